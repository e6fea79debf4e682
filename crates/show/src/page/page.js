// Shows values under the pointer, and a part of the time when it is dragged over a figure. The
// figures are complete without it: everything is read off the drawing.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const make = (name, parent) => parent.appendChild(document.createElementNS(SVG, name));
  const tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";
  tip.hidden = true;

  function tell(text, event) {
    tip.textContent = text;
    tip.hidden = !text;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    const right = event.clientX + 14 + width < innerWidth;
    tip.style.left = Math.max(4, right ? event.clientX + 14 : event.clientX - width - 14) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 12, innerHeight - height - 4)) + "px";
  }

  // Texts of single marks appear at once, not after the browser's pause.
  for (const title of document.querySelectorAll("figure svg :not(svg) > title")) {
    const mark = title.parentNode, text = title.textContent;
    mark.setAttribute("aria-label", text);
    title.remove();
    mark.addEventListener("pointermove", (event) => tell(text, event));
    mark.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  const short = (value) => String(Number(value.toPrecision(4)));
  function written(value, letter) {
    if (letter === "t") {
      const units = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];
      const [divisor, unit] = units.find(([divisor]) => value >= divisor) || units[3];
      return short(value / divisor) + " " + unit;
    }
    if (letter === "s") return short(value / 1e4) + " %";
    if (letter === "m") return short(value / 1e3);
    if (letter === "r") return short(value / 1e3) + "/s";
    return short(Math.round(value));
  }

  // An axis from its text: begin, end, letter, and `l` for logarithmic, `i` for inverted.
  function axis(text) {
    const [low, high, kind] = text.split(" ");
    const log = kind.includes("l", 1);
    const to = log ? Math.log : Number, back = log ? Math.exp : Number;
    const begin = to(+low), end = to(+high);
    return {
      letter: kind[0],
      inverted: kind.includes("i", 1),
      low: +low,
      high: +high,
      value: (part) => back(begin + part * (end - begin)),
    };
  }

  // The corners of a path of absolute commands; `null` where it is interrupted.
  function corners(path) {
    const found = [];
    let x = 0, y = 0;
    for (const [, command, rest] of path.matchAll(/([MLHVh])([^MLHVh]*)/g)) {
      const numbers = rest.trim().split(/[ ,]+/).map(Number);
      if (command === "M" && found.length) found.push(null);
      if (command === "M" || command === "L") [x, y] = numbers;
      if (command === "H") x = numbers[0];
      if (command === "V") y = numbers[0];
      if (command === "h") x += numbers[0];
      found.push([x, y]);
    }
    return found;
  }

  // The height of a curve at `x`, or nothing where it is interrupted.
  function height(points, x) {
    for (let at = 1; at < points.length; at++) {
      const from = points[at - 1], to = points[at];
      if (!from || !to || x < from[0] || x > to[0]) continue;
      const part = to[0] > from[0] ? (x - from[0]) / (to[0] - from[0]) : 1;
      return from[1] + part * (to[1] - from[1]);
    }
    return undefined;
  }

  const areas = [];
  class Area {
    constructor(svg) {
      this.svg = svg;
      this.box = svg.getAttribute("viewBox").split(" ").map(Number);
      this.shown = this.box.slice();
      this.across = axis(svg.dataset.x);
      this.up = axis(svg.dataset.y);
      this.paths = [...svg.querySelectorAll("[data-n]")].map((path) => {
        const d = path.getAttribute("d"), name = path.dataset.n;
        if (path.getAttribute("fill") === "none") {
          const dots = path.getAttribute("stroke-linecap") === "round";
          return { name, dots, points: corners(d) };
        }
        const parts = d.matchAll(/M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)/g);
        const whole = "whole" in path.dataset;
        return { name, whole, parts: [...parts].map((it) => it.slice(1).map(Number)) };
      });
      const hit = make("rect", svg);
      for (const [name, at] of [["x", 0], ["y", 1], ["width", 2], ["height", 3]]) {
        hit.setAttribute(name, this.box[at]);
      }
      hit.setAttribute("fill", "none");
      hit.setAttribute("pointer-events", "all");
      this.hair = make("path", svg);
      this.hair.setAttribute("class", "hair");
      this.hair.setAttribute("vector-effect", "non-scaling-stroke");
      svg.addEventListener("pointermove", (event) => this.move(event));
      svg.addEventListener("pointerleave", () => this.leave());
      if ("zoom" in svg.dataset) this.listen();
    }

    // Where the pointer is, in the figure's own pixels.
    place(event) {
      const rect = this.svg.getBoundingClientRect();
      const [left, top, width, tall] = this.shown;
      const part = (at, begin, length) => Math.min(1, Math.max(0, (at - begin) / length));
      return [
        left + part(event.clientX, rect.left, rect.width) * width,
        top + part(event.clientY, rect.top, rect.height) * tall,
      ];
    }

    valueAt(x) {
      return this.across.value((x - this.box[0]) / this.box[2]);
    }

    heightValue(y) {
      // Two pixels above and below the axes belong to the frame only.
      const part = 1 - (y - this.box[1] - 2) / (this.box[3] - 4);
      return this.up.value(Math.max(0, this.up.inverted ? 1 - part : part));
    }

    move(event) {
      const [x, y] = this.place(event);
      const lines = [];
      for (const path of this.paths) {
        if (path.parts) {
          const at = path.parts.find(([left, top, wide, tall]) =>
            x >= left && x <= left + wide && y >= top && y <= top + tall);
          if (!at) continue;
          const ends = [at[0], at[0] + at[2]].map((end) => written(this.valueAt(end), "t"));
          lines.push(path.whole ? path.name : `${path.name}, ${ends.join(" to ")}`);
          continue;
        }
        const found = height(path.points, x) ?? this.near(path, x);
        if (found !== undefined) {
          lines.push(path.name + ": " + written(this.heightValue(found), this.up.letter));
        }
      }
      this.hair.setAttribute("d", `M${x} ${this.box[1]}v${this.box[3]}`);
      tell([written(this.valueAt(x), this.across.letter), ...lines].join("\n"), event);
    }

    // The height of the dot that is nearest to `x`, if one is as near as a pointer can tell.
    near(path, x) {
      if (!path.dots) return undefined;
      const far = (point) => (point ? Math.abs(point[0] - x) : Infinity);
      const [first, ...rest] = path.points;
      const nearest = rest.reduce((best, it) => (far(it) < far(best) ? it : best), first);
      return far(nearest) * this.box[2] / this.shown[2] <= 6 ? nearest[1] : undefined;
    }

    leave() {
      tip.hidden = true;
      this.hair.removeAttribute("d");
    }

    listen() {
      let from = null, brush = null;
      this.svg.addEventListener("pointerdown", (event) => {
        from = this.place(event)[0];
        brush = make("rect", this.svg);
        brush.setAttribute("class", "brush");
        brush.setAttribute("y", this.box[1]);
        brush.setAttribute("height", this.box[3]);
        this.svg.setPointerCapture(event.pointerId);
        event.preventDefault();
      });
      this.svg.addEventListener("pointermove", (event) => {
        if (from === null) return;
        const x = this.place(event)[0];
        brush.setAttribute("x", Math.min(x, from));
        brush.setAttribute("width", Math.abs(x - from));
      });
      const end = (event) => {
        if (from === null) return;
        const ends = [from, this.place(event)[0]].sort((a, b) => a - b);
        brush.remove();
        from = null;
        if (ends[1] - ends[0] > this.shown[2] / 100) zoom(ends.map((x) => this.valueAt(x)));
        // The box would tell of the place where the pointer was before.
        this.leave();
      };
      this.svg.addEventListener("pointerup", end);
      this.svg.addEventListener("pointercancel", () => {
        if (brush) brush.remove();
        from = null;
      });
      this.svg.addEventListener("dblclick", () => zoom(null));
    }

    // Shows the time between two values, or all of it.
    show(ends) {
      const { low, high } = this.across;
      const [from, to] = ends ? [Math.max(low, ends[0]), Math.min(high, ends[1])] : [low, high];
      if (to <= from) return;
      const place = (value) => this.box[0] + (value - low) / (high - low) * this.box[2];
      this.shown = [place(from), this.box[1], place(to) - place(from), this.box[3]];
      this.svg.setAttribute("viewBox", this.shown.join(" "));
      this.marks(from, to);
    }

    // Writes the marks below for what is shown.
    marks(from, to) {
      const ticks = this.ticks ||= [...this.svg.parentNode.querySelectorAll(":scope > .ticks")]
        .find((it) => it.getBoundingClientRect().top >= this.svg.getBoundingClientRect().top);
      if (!ticks) return;
      this.old ||= ticks.innerHTML;
      if (from === this.across.low && to === this.across.high) {
        ticks.innerHTML = this.old;
        return;
      }
      const edge = ticks.querySelector("path").cloneNode();
      const style = ticks.querySelector("text");
      const bottom = +edge.getAttribute("d").match(/M[\d.]+ ([\d.]+)/)[1];
      const wanted = (to - from) / (this.box[2] > 500 ? 6 : 3);
      const power = 10 ** Math.floor(Math.log10(wanted));
      const step = power * [1, 2, 5, 10].find((it) => it * power >= wanted);
      const fresh = [edge];
      for (let value = Math.ceil(from / step) * step; value <= to; value += step) {
        const x = this.box[0] + (value - from) / (to - from) * this.box[2];
        const tick = edge.cloneNode();
        tick.setAttribute("d", `M${x} ${bottom}v4`);
        const text = style.cloneNode();
        text.setAttribute("x", x);
        text.textContent = written(value, this.across.letter);
        fresh.push(tick, text);
      }
      ticks.replaceChildren(...fresh);
    }
  }

  const whole = document.body.appendChild(document.createElement("button"));
  whole.id = "whole";
  whole.type = "button";
  whole.hidden = true;
  whole.textContent = "Show the whole time";
  whole.addEventListener("click", () => zoom(null));

  function zoom(ends) {
    for (const area of areas) if ("zoom" in area.svg.dataset) area.show(ends);
    whole.hidden = !ends;
  }

  for (const svg of document.querySelectorAll("svg.area")) areas.push(new Area(svg));
  document.documentElement.dataset.ready = String(areas.length);
})();
