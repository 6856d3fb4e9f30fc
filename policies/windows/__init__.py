"""Command lines of cmd and PowerShell, and Windows' spellings of paths.

An allowed line is quoted anew, so that it is harmless under cmd, PowerShell and bash alike, because the shell
that runs it is not known here. Nothing of this was executed on Windows: it follows the published grammar of
both shells and the published naming rules of NTFS, and refuses whatever these leave unclear.

Not promised: that a folder is not swapped for a link between the check and the run; that a console with an
old code page keeps every character; folders in which NTFS regards case; names that two hard links share.
Short (8.3) names are refused as spelled and expected in patterns, but never looked up.
"""
