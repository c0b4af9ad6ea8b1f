// The axis, and the map of the whole time above it.

const steps = [1, 2, 5].flatMap((n) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((m) => n * m)).filter((s) => s <= 5e6)
	.concat([10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, ...[1, 2, 5, 10, 20, 50, 100, 200].map((days) => days * 86400)].map((s) => s * 1e6)).sort((a, b) => a - b);

const ticks = (width) => {
	const room = (width - view.left) / (clock === "wall" ? 110 : 84), least = (view.to - view.from) / Math.max(1, room);
	const step = steps.find((s) => s >= least) || steps[steps.length - 1] * Math.ceil(least / steps[steps.length - 1]);
	const shift = clock === "wall" ? (begin * 1e3) % step : 0, at = [];
	for (let t = Math.ceil((view.from + shift) / step) * step - shift; t <= view.to; t += step) at.push(t);
	return { at, step };
};

const drawAxis = (canvas, width) => {
	const ctx = size(canvas, width, 22), { at, step } = ticks(width);
	ctx.font = theme.small;
	for (const t of at) {
		const words = moment(t, step), x = X(t);
		box(ctx, x, x + 1, 16, 6, theme.soft, 1);
		ctx.fillStyle = theme.soft;
		if (x + 3 + widthOf(ctx, words) < width) ctx.fillText(words, x + 3, 10);
	}
	if (clock === "wall") write(ctx, new Date(begin + view.from / 1e3).toISOString().slice(0, 10), 6, 11, view.left - 10, theme.soft);
	else write(ctx, duration(view.to - view.from) + " shown", 6, 11, view.left - 10, theme.soft);
};

// The map counts, for each of its columns, the units and the waits that were under way.
const COLUMNS = 600;
const countAll = (n, start, end) => {
	const to = new Float64Array(COLUMNS + 1);
	for (let i = 0; i < n; i++) {
		const a = Math.min(COLUMNS - 1, Math.floor((start[i] / length) * COLUMNS));
		const b = Math.max(a + 1, Math.min(COLUMNS, Math.ceil((end[i] / length) * COLUMNS)));
		to[Math.max(0, a)]++;
		to[b]--;
	}
	for (let i = 1; i <= COLUMNS; i++) to[i] += to[i - 1];
	return to;
};
const crowd = countAll(units.n, units.start, units.end), waiting = countAll(waits.n, waits.start, waits.end);
const tallest = crowd.reduce((a, b) => Math.max(a, b), 1);
const graves = Array.from(new Set(Array.from(inOrder(marks.n)).filter((m) => grave.has(marks.kind[m])).map((m) => Math.floor((marks.at[m] / length) * COLUMNS))));

const MAP = 40;
const mapX = (t, width) => 6 + (t / length) * (width - 12);
const mapT = (x, width) => ((x - 6) / (width - 12)) * length;

const drawMap = (canvas, width) => {
	const ctx = size(canvas, width, MAP), column = (width - 12) / COLUMNS, high = MAP - 10;
	box(ctx, 6, width - 6, 4, high, theme.stripe, 1);
	for (let i = 0; i < COLUMNS; i++) {
		const x = 6 + i * column, h = (crowd[i] / tallest) * (high - 4), w = (Math.min(waiting[i], crowd[i]) / tallest) * (high - 4);
		box(ctx, x, x + column + 0.3, 4 + high - h, h, theme.blue, 0.45);
		box(ctx, x, x + column + 0.3, 4 + high - w, w, theme.amber, 0.8);
	}
	for (const i of graves) box(ctx, 6 + i * column, 6 + i * column + 2, 4, 5, theme.red, 1);
	const x0 = mapX(view.from, width), x1 = mapX(view.to, width);
	box(ctx, 6, x0, 4, high, theme.back, 0.65);
	box(ctx, x1, width - 6, 4, high, theme.back, 0.65);
	ctx.strokeStyle = theme.ink;
	ctx.lineWidth = 1.5;
	ctx.strokeRect(x0, 3, Math.max(3, x1 - x0), high + 2);
};
