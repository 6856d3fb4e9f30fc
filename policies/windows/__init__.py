"""What may happen on Windows: command lines of cmd and PowerShell, and Windows' spellings of paths.

What is allowed is quoted anew, and that line is harmless under cmd, PowerShell and bash alike, because
which of them runs it is not known here. None of this was executed on Windows: it follows the published
grammar of both shells and the published naming rules of NTFS, and refuses where those are unclear.

Not promised: that nobody swaps a folder for a link between the check and the run; that a console with an
old code page keeps every character; folders that NTFS treats with regard to case; names that two hard
links share. Short (8.3) names are refused as spelled and reckoned with in patterns, never looked up.
"""

from policies.windows.approval import WindowsApproval
from policies.windows.judge import judge_windows_command
from policies.windows.workspace import WindowsWorkspace

__all__ = [
    "WindowsApproval",
    "WindowsWorkspace",
    "judge_windows_command",
]
