// Makes characters visible that hide or reorder text, so that an approval shows the real name or command.

// C0 and C1 controls but tab and newline, soft hyphen, zero-width and bidirectional marks, tags, lone surrogates.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Cs}]/gu;

export function showHidden(text) {
  return String(text ?? "").replace(HIDDEN, (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
