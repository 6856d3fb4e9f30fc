// Follows the end of the transcript while the reader is there, and leaves a reader who scrolled up alone.

const NEAR_PX = 48;
const MARGIN_PX = 16;

export class Scroll {
  element;
  #jump;
  #lastTop_px = 0;
  isAtEnd = true;
  /** False while the content ends before the latest turn: its end is then not followed. */
  isAtLatest = true;

  constructor(scroller, content, jump) {
    this.element = scroller;
    this.#jump = jump;
    scroller.addEventListener("scroll", () => this.#read(), { passive: true });
    // A reader who turns the wheel or swipes up means it, however fast the text comes.
    scroller.addEventListener("wheel", (event) => { if (event.deltaY < 0) this.#leaveEnd(); }, { passive: true });
    new ResizeObserver(() => this.settle()).observe(content);
    new ResizeObserver(() => this.settle()).observe(scroller);
  }

  /** The reader asks for the latest. */
  onLatest(hear) {
    this.#jump.addEventListener("click", hear);
  }

  get #isNear() {
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    return this.isAtLatest && scrollHeight - scrollTop - clientHeight < NEAR_PX;
  }

  #read() {
    const top_px = this.element.scrollTop;
    const isNear = this.#isNear;
    // New content moves the end away without anybody scrolling: only a way up leaves it.
    if (isNear || top_px < this.#lastTop_px) this.isAtEnd = isNear;
    this.#lastTop_px = top_px;
    this.#jump.hidden = this.isAtEnd || isNear;
  }

  #leaveEnd() {
    if (this.element.scrollHeight <= this.element.clientHeight) return;
    this.isAtEnd = false;
    this.#jump.hidden = false;
  }

  /** After the content changed. */
  settle() {
    if (this.isAtEnd) this.#moveTo(this.element.scrollHeight);
    else this.#jump.hidden = this.#isNear;
  }

  /** Where there is nothing to scroll, measuring would lay the page out for nothing. */
  toEnd({ isEmpty = false } = {}) {
    this.isAtEnd = true;
    this.#jump.hidden = true;
    if (!isEmpty) this.#moveTo(this.element.scrollHeight);
  }

  /** Content that shrinks moves the place up as well: noted here, that is not taken for a reader's doing. */
  #moveTo(top_px) {
    this.element.scrollTop = top_px;
    this.#lastTop_px = this.element.scrollTop;
  }

  /** Show the beginning of an element of the content, and stay there. */
  show(node) {
    this.isAtEnd = false;
    this.#moveTo(this.element.scrollTop + this.#offset_px(node) - MARGIN_PX);
    this.#jump.hidden = this.#isNear;
  }

  #offset_px(node) {
    return node.getBoundingClientRect().top - this.element.getBoundingClientRect().top;
  }

  /** Change the content without moving what the reader sees; `kept` are nodes that stay. */
  keepPlace(kept, change) {
    const seen = kept.find((node) => this.#offset_px(node) + node.offsetHeight > 0) ?? kept.at(-1);
    const before_px = seen && this.#offset_px(seen);
    change();
    if (seen && !this.isAtEnd) this.#moveTo(this.element.scrollTop + this.#offset_px(seen) - before_px);
  }
}
