// Bars: what is too thin to be seen becomes a strip, as dark as the time is covered by bars. So a
// row costs no more than its pixels, however many bars it has.

const view = { from: 0, to: length, left: 180, width: 0 };
const stats = { frames: 0, bars: 0, rows: 0, marks: 0, took: 0 };

const X = (t) => view.left + ((t - view.from) / (view.to - view.from)) * (view.width - view.left);
const T = (x) => view.from + ((x - view.left) / (view.width - view.left)) * (view.to - view.from);

// firstEnding is the first of refs[low:high] that ends after t.
const firstEnding = (rows, low, high, t) => {
	const end = rows.columns.end;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (end[rows.refs[middle]] > t) high = middle; else low = middle + 1;
	}
	return low;
};

// firstStarting is the first that starts at t or later.
const firstStarting = (rows, low, high, t) => {
	const start = rows.columns.start;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (start[rows.refs[middle]] >= t) high = middle; else low = middle + 1;
	}
	return low;
};

// drawRow calls bar(ref, x0, x1) for what is wide enough, and strip(ref, x, covered) for a pixel
// of what is not.
const drawRow = (rows, row, bar, strip) => {
	const high = rows.first[row + 1], { start, end } = rows.columns, pixel = (view.to - view.from) / (view.width - view.left);
	stats.rows++;
	for (let i = firstEnding(rows, rows.first[row], high, view.from); i < high; ) {
		const ref = rows.refs[i];
		if (start[ref] >= view.to) return;
		const x0 = X(start[ref]), x1 = X(end[ref]);
		stats.bars++;
		if (x1 - x0 >= 2) {
			bar(ref, Math.max(x0, view.left - 2), Math.min(x1, view.width + 2), x0, x1);
			i++;
			continue;
		}
		const x = Math.max(view.left, Math.floor(x0)), until = T(x + 1);
		let j = firstStarting(rows, i + 1, high, until);
		const covered = (rows.covered[j] - rows.covered[i]) / pixel;
		strip(ref, x, Math.min(1, covered), j - i);
		if (j - i > 1 && end[rows.refs[j - 1]] > until + 2 * pixel) j--; // that one is wide
		i = j;
	}
};

// seenMarks is how many marks there are in the time that is shown.
const seenMarks = (grouped, n, times = marks.at) => {
	const at = (t) => {
		let low = grouped.first[n], high = grouped.first[n + 1];
		while (low < high) {
			const middle = (low + high) >> 1;
			if (times[grouped.to[middle]] >= t) high = middle; else low = middle + 1;
		}
		return low;
	};
	return at(view.to) - at(view.from);
};

// drawMarks calls one(mark, x) for marks that are at least so far apart.
const drawMarks = (grouped, n, apart, one, times = marks.at) => {
	let low = grouped.first[n];
	const high = grouped.first[n + 1];
	const from = (t, a) => {
		let z = high;
		while (a < z) {
			const middle = (a + z) >> 1;
			if (times[grouped.to[middle]] >= t) z = middle; else a = middle + 1;
		}
		return a;
	};
	low = from(view.from, low);
	while (low < high) {
		const m = grouped.to[low];
		if (times[m] > view.to) return;
		const x = X(times[m]);
		stats.marks++;
		one(m, x);
		low = Math.max(low + 1, from(T(x + apart), low));
	}
};

const widths = new Map();
const widthOf = (ctx, words) => {
	if (widths.size > 20000) widths.clear();
	const key = ctx.font + words;
	if (!widths.has(key)) widths.set(key, ctx.measureText(words).width);
	return widths.get(key);
};

// fitted is as much of a text as there is room for.
const fitted = (ctx, words, room) => {
	if (room < 14) return "";
	if (widthOf(ctx, words) <= room) return words;
	let low = 0, high = words.length;
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (ctx.measureText(words.slice(0, middle) + "…").width <= room) low = middle; else high = middle - 1;
	}
	return low > 1 ? words.slice(0, low) + "…" : "";
};

// shortened leaves out the middle of a text for which there is no room: names differ at their ends.
const shortened = (ctx, words, room) => {
	if (widthOf(ctx, words) <= room) return words;
	let keep = words.length - 1;
	const cut = () => words.slice(0, Math.ceil(keep / 3)) + "…" + words.slice(words.length - Math.floor((keep * 2) / 3));
	while (keep > 3 && widthOf(ctx, cut()) > room) keep--;
	return cut();
};

const write = (ctx, words, x, y, room, colour) => {
	const shown = fitted(ctx, words, room);
	if (!shown) return;
	ctx.fillStyle = colour;
	ctx.fillText(shown, x, y);
};

// duration says microseconds in the unit that people would.
const duration = (us) => {
	const a = Math.abs(us), say = (n, unit) => `${n >= 100 ? Math.round(n) : n >= 10 ? +n.toFixed(1) : +n.toFixed(2)} ${unit}`;
	if (a < 1000) return say(a, "µs");
	if (a < 1e6) return say(a / 1e3, "ms");
	if (a < 60e6) return say(a / 1e6, "s");
	const seconds = Math.round(a / 1e6), two = (n) => String(n).padStart(2, "0");
	if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)} min`;
	if (seconds < 2 * 86400) return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)} h`;
	return `${Math.floor(seconds / 86400)} d ${Math.floor(seconds / 3600) % 24} h`;
};

let clock = "relative";
// moment says a time, to as many digits as step needs.
const moment = (us, step = 1) => {
	if (clock === "wall") {
		const at = Math.floor(Math.floor(begin * 1e3 + 0.1) + us), text = new Date(Math.floor(at / 1e3)).toISOString();
		const micros = String(((at % 1e6) + 1e6) % 1e6).padStart(6, "0");
		if (step >= 86400e6) return text.slice(0, 10);
		if (step >= 60e6) return text.slice(11, 16);
		if (step >= 1e6) return text.slice(11, 19);
		return text.slice(11, 19) + "." + micros.slice(0, step >= 1e3 ? 3 : 6);
	}
	if (us < 0) return "-" + moment(-us, step);
	const digits = step >= 1e6 ? 0 : step >= 1e5 ? 1 : step >= 1e4 ? 2 : step >= 1e3 ? 3 : step >= 100 ? 4 : step >= 10 ? 5 : 6;
	if (us < 60e6 || step < 1e6) {
		const whole = Math.floor(us / 60e6), rest = (us - whole * 60e6) / 1e6;
		if (!whole) return rest.toFixed(digits) + " s";
		return `${whole}:${rest.toFixed(digits).padStart(digits ? digits + 3 : 2, "0")}`;
	}
	const s = Math.round(us / 1e6), two = (n) => String(n).padStart(2, "0");
	return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
};
