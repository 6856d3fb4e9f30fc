"""Command lines of PowerShell, with four commands of cmd, and Windows' spellings of paths.

Nine commands are understood, and each is judged as the POSIX command of the same effect. What runs
is the cmdlet, written anew with whole, quoted paths, so that the shell interprets nothing. Nothing
of this was run on Windows: it follows the published rules of PowerShell and NTFS, and refuses what
these leave unclear.
"""
