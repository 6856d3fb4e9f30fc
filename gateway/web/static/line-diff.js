// The lines in which two texts differ.

// The table of a longer comparison would take too much time and space.
const MAX_CELLS = 1_000_000;

const linesOf = (text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
const rows = (sign, lines) => lines.map((text) => ({ sign, text }));

/** The lengths of the longest common rests of both texts, by their first lines. */
function commonRests(before, after) {
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let one = before.length - 1; one >= 0; one -= 1) {
    for (let other = after.length - 1; other >= 0; other -= 1) {
      const at = one * width + other;
      lengths[at] = before[one] === after[other] ? lengths[at + width + 1] + 1 : Math.max(lengths[at + width], lengths[at + 1]);
    }
  }
  return (one, other) => lengths[one * width + other];
}

function compare(before, after) {
  if (before.length * after.length > MAX_CELLS) return [...rows("-", before), ...rows("+", after)];
  const rest = commonRests(before, after);
  const found = [];
  let one = 0;
  let other = 0;
  while (one < before.length && other < after.length) {
    if (before[one] === after[other]) {
      found.push({ sign: " ", text: before[one] });
      one += 1;
      other += 1;
    } else if (rest(one + 1, other) >= rest(one, other + 1)) {
      found.push({ sign: "-", text: before[one] });
      one += 1;
    } else {
      found.push({ sign: "+", text: after[other] });
      other += 1;
    }
  }
  return [...found, ...rows("-", before.slice(one)), ...rows("+", after.slice(other))];
}

/** `{sign: " " | "-" | "+", text}` for each line, in order. */
export function lineDiff(before, after) {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end += 1;
  return [
    ...rows(" ", old.slice(0, start)),
    ...compare(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end)),
    ...rows(" ", old.slice(old.length - end)),
  ];
}
