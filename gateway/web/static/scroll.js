// Follows the end of the transcript while the reader is there, and leaves a reader who scrolled up alone.

const NEAR_PX = 48;

export class Scroll {
  #scroller;
  #jump;
  #lastTop_px = 0;
  isAtEnd = true;

  constructor(scroller, content, jump) {
    this.#scroller = scroller;
    this.#jump = jump;
    scroller.addEventListener("scroll", () => this.#read(), { passive: true });
    // A reader who turns the wheel or swipes up means it, however fast the text comes.
    scroller.addEventListener("wheel", (event) => { if (event.deltaY < 0) this.#leaveEnd(); }, { passive: true });
    jump.addEventListener("click", () => this.toEnd());
    new ResizeObserver(() => this.settle()).observe(content);
    new ResizeObserver(() => this.settle()).observe(scroller);
  }

  get #distance_px() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  #read() {
    const top_px = this.#scroller.scrollTop;
    const isNear = this.#distance_px < NEAR_PX;
    // New content moves the end away without anybody scrolling: only a way up leaves it.
    if (isNear || top_px < this.#lastTop_px) this.isAtEnd = isNear;
    this.#lastTop_px = top_px;
    this.#jump.hidden = this.isAtEnd || isNear;
  }

  #leaveEnd() {
    if (this.#scroller.scrollHeight <= this.#scroller.clientHeight) return;
    this.isAtEnd = false;
    this.#jump.hidden = false;
  }

  /** After the content changed. */
  settle() {
    if (this.isAtEnd) this.#moveToEnd();
    else this.#jump.hidden = this.#distance_px < NEAR_PX;
  }

  toEnd() {
    this.isAtEnd = true;
    this.#jump.hidden = true;
    this.#moveToEnd();
  }

  /** Content that shrinks moves the place up as well: noted here, that is not taken for a reader's doing. */
  #moveToEnd() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#lastTop_px = this.#scroller.scrollTop;
  }

  /** Change the content above without moving what the reader sees. */
  keepPlace(change) {
    const fromEnd_px = this.#scroller.scrollHeight - this.#scroller.scrollTop;
    this.isAtEnd = false;
    change();
    this.#scroller.scrollTop = this.#scroller.scrollHeight - fromEnd_px;
  }
}
