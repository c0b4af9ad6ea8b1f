// Drawing. A frame draws the lanes that are seen, and of them what is seen.

// kin of a unit are those of its group, and those behind which it waited.
const chosen = { unit: NONE, key: NONE, kin: new Set() };
const kinOf = (u) => {
	const kin = new Set(members(followersOf, u));
	if (units.leader[u] !== NONE) {
		kin.add(units.leader[u]);
		for (const v of members(followersOf, units.leader[u])) kin.add(v);
	}
	for (let s = units.first[u]; s < units.first[u + 1]; s++) if (waitOf.has(s) && waits.holder[waitOf.get(s)] !== NONE) kin.add(waits.holder[waitOf.get(s)]);
	kin.delete(u);
	return kin;
};
let matched = null; // a byte for each unit, or null if nothing is searched for
let matchedKey = null;

const fadedUnit = (u) => matched && !(u !== NONE && matched[u]);

const size = (canvas, width, height) => {
	const scale = devicePixelRatio || 1;
	const w = Math.round(width * scale), h = Math.round(height * scale);
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
		canvas.style.width = width + "px";
		canvas.style.height = height + "px";
	}
	const ctx = canvas.getContext("2d");
	ctx.setTransform(scale, 0, 0, scale, 0, 0);
	ctx.clearRect(0, 0, width, height);
	ctx.font = theme.font;
	ctx.textBaseline = "middle";
	return ctx;
};

const box = (ctx, x0, x1, y, h, fill, alpha) => {
	ctx.globalAlpha = alpha;
	ctx.fillStyle = fill;
	ctx.fillRect(x0, y, Math.max(1, x1 - x0), h);
	ctx.globalAlpha = 1;
};

const frame = (ctx, x0, x1, y, h, colour, dashes) => {
	ctx.strokeStyle = colour;
	ctx.lineWidth = 1;
	ctx.setLineDash(dashes || []);
	ctx.strokeRect(x0 + 0.5, y + 0.5, Math.max(1, x1 - x0 - 1), h - 1);
	ctx.setLineDash([]);
};

const highlight = (ctx, u, x0, x1, y, h) => {
	if (u === NONE || (u !== chosen.unit && !chosen.kin.has(u))) return;
	ctx.strokeStyle = theme.ink;
	ctx.lineWidth = u === chosen.unit ? 2 : 1.5;
	ctx.setLineDash(u === chosen.unit ? [] : [4, 3]);
	ctx.strokeRect(x0 - 1, y - 1, Math.max(2, x1 - x0 + 2), h + 2);
	ctx.setLineDash([]);
};

// drawHold is one bar of who has a key.
const drawHold = (ctx, h, x0, x1, y) => {
	const u = holds.unit[h], colour = colourOf(u), fade = fadedUnit(u) ? 0.14 : 1, high = HOLD - 2;
	const died = u !== NONE && units.fate[u] === DIED ? Math.max(x0, Math.min(x1, X(units.end[u]))) : x1;
	switch (holds.having[h]) {
	case HELD:
		box(ctx, x0, died, y, high, colour, fade);
		break;
	case TAKING:
		box(ctx, x0, died, y, high, colour, 0.3 * fade);
		box(ctx, x0, died, y + high - 2, 2, colour, fade);
		break;
	default:
		box(ctx, x0, died, y, high, colour, 0.22 * fade);
		if (x1 - x0 > 5) frame(ctx, x0, died, y, high, colour, [2, 2]);
	}
	if (died < x1) {
		ctx.globalAlpha = fade;
		ctx.fillStyle = hatched(ctx, theme.dead);
		ctx.fillRect(died, y, x1 - died, high);
		frame(ctx, died, x1, y, high, theme.dead, [3, 2]);
		ctx.globalAlpha = 1;
	}
	if (holds.left[h] === LOST) box(ctx, x1 - 2, x1 + 1, y - 1, high + 2, theme.red, fade);
	if (holds.left[h] === BURIED) box(ctx, x1 - 2, x1 + 1, y - 1, high + 2, theme.dead, fade);
	if (!fade || fade < 1) return;
	if (u !== NONE && x1 - x0 > 30) {
		drawMarks(marksOfUnit, u, 3, (m, x) => {
			if (x < x0 || x > x1) return;
			if (marks.kind[m] === M.heartbeat) box(ctx, x, x + 1, y + high - 4, 4, theme.ink, 0.55);
			else if (marks.kind[m] === M["heartbeat failed"]) box(ctx, x - 1, x + 1, y, high, theme.red, 1);
		});
	}
	const room = died - x0;
	if (room > 34) write(ctx, u === NONE ? shortName(text(holds.name[h])) : titleOf(u), x0 + 4, y + high / 2 + 1, room - 8, holds.having[h] === HELD ? theme.on : theme.ink);
	if (x1 - died > 44) {
		box(ctx, died + 4, died + 34, y + 1, high - 2, theme.back, 1);
		write(ctx, "dead", died + 7, y + high / 2 + 1, x1 - died - 8, theme.ink);
	}
	highlight(ctx, u, x0, x1, y, high);
};

const drawWait = (ctx, w, x0, x1, y, high) => {
	const u = waits.unit[w], fade = fadedUnit(u) && fadedUnit(waits.holder[w]) ? 0.14 : 1;
	ctx.globalAlpha = fade;
	ctx.fillStyle = x1 - x0 < 5 ? colourOf(u) : hatched(ctx, colourOf(u));
	ctx.fillRect(x0, y, x1 - x0, high);
	ctx.globalAlpha = 1;
	if (spans.open[waits.span[w]] === 0 && spans.err[waits.span[w]]) box(ctx, x1 - 2, x1, y, high, theme.red, fade);
	highlight(ctx, u, x0, x1, y, high);
};

const strip = (ctx, colour, x, y, h, covered, fade) => box(ctx, x, x + 1, y, h, colour, (0.4 + 0.6 * covered) * fade);

// The signs of marks, small and each of its own shape.
const sign = (ctx, m, x, y) => signOf(ctx, marks.kind[m], x, y);
const signOf = (ctx, kind, x, y) => {
	const s = 3.5;
	const shape = (colour, ...points) => {
		ctx.fillStyle = colour;
		ctx.beginPath();
		points.forEach(([a, b], i) => (i ? ctx.lineTo(x + a * s, y + b * s) : ctx.moveTo(x + a * s, y + b * s)));
		ctx.closePath();
		ctx.fill();
	};
	const cross = (colour) => {
		ctx.strokeStyle = colour;
		ctx.lineWidth = 2;
		ctx.beginPath();
		ctx.moveTo(x - s, y - s); ctx.lineTo(x + s, y + s);
		ctx.moveTo(x + s, y - s); ctx.lineTo(x - s, y + s);
		ctx.stroke();
	};
	const ring = (colour) => {
		ctx.strokeStyle = colour;
		ctx.lineWidth = 1.5;
		ctx.beginPath();
		ctx.arc(x, y, s - 0.5, 0, 7);
		ctx.stroke();
	};
	switch (kind) {
	case M.started: return shape(theme.green, [-1, -1.1], [1, 0], [-1, 1.1]);
	case M.note: return shape(theme.blue, [-1, -1], [1, -1], [1, 0.4], [0, 1.2], [-1, 0.4]);
	case M.paused: box(ctx, x - 3, x - 1, y - s, 2 * s, theme.amber, 1); return box(ctx, x + 1, x + 3, y - s, 2 * s, theme.amber, 1);
	case M.heartbeat: return box(ctx, x - 0.5, x + 0.5, y + 2, 4, theme.ink, 0.6);
	case M["heartbeat failed"]: return box(ctx, x - 1, x + 1, y - 5, 10, theme.red, 1);
	case M["token raised"]: return shape(theme.violet, [-1, 0.8], [0, -1], [1, 0.8]);
	case M.lost: return cross(theme.red);
	case M.buried: return cross(theme.dead);
	case M.cleaned: return ring(theme.dead);
	case M.dropped: return shape(theme.red, [-1, -0.8], [1, -0.8], [0, 1]);
	case M["handed over"]: return shape(theme.soft, [-0.8, -0.9], [0.9, 0], [-0.8, 0.9]);
	case M["joined the queue"]: return box(ctx, x - 0.5, x + 0.5, y - 3, 6, theme.soft, 1);
	case M.journal: return shape(theme.violet, [0, -1.2], [1.1, 0], [0, 1.2], [-1.1, 0]);
	case M.unfinished: return shape(theme.amber, [0, -1.2], [1.2, 1], [-1.2, 1]);
	case M.recovered: return ring(theme.green);
	}
};

const drawKeyLane = (ctx, lane, y) => {
	const k = lane.key;
	let at = y + PAD;
	for (let r = 0; r < lane.holders; r++, at += HOLD) {
		if (r >= keys.holders[k]) continue;
		const top = at + 1;
		drawRow(holdRows, holdRows.base[k] + r, (h, x0, x1) => drawHold(ctx, h, x0, x1, top),
			(h, x, covered) => strip(ctx, colourOf(holds.unit[h]), x, top, HOLD - 2, covered, fadedUnit(holds.unit[h]) ? 0.14 : 1));
	}
	// Who joined and who was handed what is told if there is room; the dead always are.
	if (seenMarks(quietOfKey, k) < (view.width - view.left) / 16) drawMarks(quietOfKey, k, 6, (m, x) => sign(ctx, m, x, y + PAD + HOLD / 2));
	drawMarks(gravesOfKey, k, 6, (m, x) => sign(ctx, m, x, y + PAD + HOLD / 2));
	drawMarks(fellBackOfKey, k, 5, (u, x) => {
		if (fadedUnit(u)) return;
		ctx.strokeStyle = theme.amber;
		ctx.lineWidth = 1.5;
		ctx.beginPath();
		ctx.moveTo(x - 3, y + PAD - 1); ctx.lineTo(x, y + PAD + 3); ctx.lineTo(x + 3, y + PAD - 1);
		ctx.stroke();
	}, units.end);
	for (let r = 0; r < lane.waiters; r++, at += WAIT) {
		const top = at + 1;
		drawRow(waitRows, waitRows.base[k] + r, (w, x0, x1) => drawWait(ctx, w, x0, x1, top, WAIT - 2),
			(w, x, covered) => strip(ctx, theme.amber, x, top, WAIT - 2, covered, fadedUnit(waits.unit[w]) ? 0.14 : 0.8));
	}
	if (lane.rest) {
		for (let r = lane.waiters; r < Math.min(keys.waiters[k], lane.waiters + 12); r++) {
			drawRow(waitRows, waitRows.base[k] + r, (w, x0, x1) => box(ctx, x0, x1, at, STRIP - 1, theme.amber, 0.25), (w, x) => box(ctx, x, x + 1, at, STRIP - 1, theme.amber, 0.25));
		}
		at += STRIP;
	}
	if (lane.below) {
		const high = lane.below - 2, rows = stripOf(k);
		drawRow(rows, 0, (b, x0, x1) => box(ctx, x0, x1, at + 1, high, theme.grey, 0.55), (b, x, covered) => box(ctx, x, x + 1, at + 1, high, theme.grey, 0.15 + 0.4 * covered));
	}
};

const drawUnit = (ctx, u, x0, x1, y, lane) => {
	const colour = colourOf(u), fade = fadedUnit(u) ? 0.14 : 1, high = UNIT - 4, way = units.way[u];
	const loosely = way === W["without locks"] || way === W.together || way === W["apart from units"];
	box(ctx, x0, x1, y, high, colour, (loosely ? 0.3 : 1) * fade);
	if (loosely && x1 - x0 > 4) {
		ctx.globalAlpha = fade;
		frame(ctx, x0, x1, y, high, colour);
		ctx.globalAlpha = 1;
	}
	if (way === W.together) box(ctx, x0, Math.min(x1, x0 + 3), y, high, colour, fade);
	if (x1 - x0 > 24 && fade === 1) drawPhases(ctx, u, x0, x1, y + high - 3);
	const edge = edgeOf(u);
	if (edge) box(ctx, Math.max(x0, x1 - 3), x1, y, high, edge, fade);
	if (fade === 1 && x1 - x0 > 40) write(ctx, titleOf(u), x0 + 6, y + high / 2 - 0.5 - (x1 - x0 > 24 ? 1 : 0), x1 - x0 - 13, loosely ? theme.ink : theme.on);
	if (fade === 1 && x1 - x0 > 12) {
		drawMarks(marksOfUnit, u, 4, (m, x) => {
			if (x >= x0 - 1 && x <= x1 + 1 && marks.key[m] === NONE && !aloft(m)) sign(ctx, m, x, y + high / 2);
		});
	}
	highlight(ctx, u, x0, x1, y, high);
	if (lane.open && x1 - x0 > 8) drawNested(ctx, u, y + UNIT, fade);
};

const MOST = 600; // spans of one unit that a frame draws

const seenSpans = function* (u) {
	const low = units.first[u], high = units.first[u + 1], step = Math.max(1, Math.ceil((high - low) / MOST));
	for (let s = low; s < high; s += step) if (spans.end[s] >= view.from && spans.start[s] <= view.to) yield s;
};

const drawPhases = (ctx, u, x0, x1, y) => {
	for (const s of seenSpans(u)) {
		if (spans.kind[s] === K.request) continue;
		stats.bars++;
		box(ctx, Math.max(x0, X(spans.start[s])), Math.min(x1, X(spans.end[s])), y, 3, kindColour(spans.kind[s]), 1);
	}
};

const depthOf = (s) => {
	let depth = 0;
	for (; spans.back[s] && depth < DEPTH - 1; s -= spans.back[s]) depth++;
	return depth;
};

const drawNested = (ctx, u, y, fade) => {
	for (const s of seenSpans(u)) {
		const x0 = Math.max(view.left - 2, X(spans.start[s])), x1 = Math.min(view.width + 2, X(spans.end[s])), top = y + depthOf(s) * NESTED;
		if (x1 - x0 < 0.4) continue;
		stats.bars++;
		const colour = kindColour(spans.kind[s]), high = NESTED - 1;
		ctx.globalAlpha = fade;
		ctx.fillStyle = spans.kind[s] === K.wait && x1 - x0 > 4 ? hatched(ctx, colour) : colour;
		ctx.globalAlpha = fade * (spans.kind[s] === K.wait ? 1 : 0.62);
		ctx.fillRect(x0, top, Math.max(1, x1 - x0 - 0.5), high);
		ctx.globalAlpha = 1;
		if (spans.err[s]) box(ctx, x1 - 2, x1, top, high, theme.red, fade);
		if (fade === 1 && x1 - x0 > 44 && spans.kind[s] !== K.wait) {
			ctx.font = theme.small;
			write(ctx, spans.kind[s] === K.request ? text(spans.text[s]).split(",")[0] : kinds[spans.kind[s]], x0 + 3, top + high / 2 + 0.5, x1 - x0 - 5, theme.ink);
			ctx.font = theme.font;
		}
	}
};

const drawProcessLane = (ctx, lane, y) => {
	const p = lane.process, band = y + PAD + BAND / 2 - 1;
	for (let r = 0; r < processes.rows[p]; r++) {
		const top = y + PAD + BAND + r * lane.row;
		if (top + lane.row < 0 || top > panes.processes.seen) continue;
		drawRow(unitRows, unitRows.base[p] + r, (u, x0, x1) => drawUnit(ctx, u, x0, x1, top, lane),
			(u, x, covered) => strip(ctx, edgeOf(u) || colourOf(u), x, top, UNIT - 4, covered, fadedUnit(u) ? 0.14 : 1));
	}
	drawMarks(marksOfProcess, p, 6, (m, x) => { if (!grave.has(marks.kind[m])) sign(ctx, m, x, band); });
	drawMarks(gravesOfProcess, p, 6, (m, x) => {
		if (marks.kind[m] === M.paused) {
			const from = Math.max(view.left, X(marks.at[m] - marks.count[m] * 1e3));
			ctx.fillStyle = hatched(ctx, theme.amber);
			ctx.fillRect(from, band - 4, x - from, 8);
		}
		sign(ctx, m, x, band);
	});
};

// drawName writes what a lane is, left of it.
const drawName = (ctx, lane, y) => {
	const isKey = lane.key !== undefined, indent = 6 + lane.depth * 12, middle = y + PAD + (isKey ? HOLD : BAND + UNIT) / 2 - (isKey ? 0 : BAND / 2);
	ctx.fillStyle = theme.back;
	ctx.fillRect(0, y, view.left - 1, lane.height);
	if (lane.folds) {
		ctx.fillStyle = theme.soft;
		ctx.beginPath();
		const s = 3.5, x = indent + 4;
		if (lane.open) { ctx.moveTo(x - s, middle - 2); ctx.lineTo(x + s, middle - 2); ctx.lineTo(x, middle + s); }
		else { ctx.moveTo(x - 2, middle - s); ctx.lineTo(x + s, middle); ctx.lineTo(x - 2, middle + s); }
		ctx.fill();
	}
	let name = isKey ? keyName(lane.key) : processName(lane.process), beside = "";
	if (isKey && keys.parent[lane.key] !== NONE) name = name.slice(keyName(keys.parent[lane.key]).length + 1);
	const hot = isKey ? (lane.open ? keys.waited : hotness)[lane.key] : 0;
	if (hot && view.left > 150) beside = duration(hot);
	ctx.font = theme.small;
	const taken = beside ? widthOf(ctx, beside) + 10 : 4;
	if (beside) write(ctx, beside, view.left - taken + 2, middle, taken, theme.soft);
	ctx.font = theme.font;
	const here = isKey && lane.key === chosen.key, fades = isKey && matchedKey && matched && !matchedKey[lane.key];
	ctx.globalAlpha = fades ? 0.5 : 1;
	name = shortened(ctx, name, view.left - indent - 16 - taken);
	write(ctx, name, indent + 12, middle, view.left - indent - 16 - taken, here ? theme.blue : theme.ink);
	ctx.globalAlpha = 1;
};

const drawPane = (pane, drawLane) => {
	const top = pane.scroller.scrollTop, high = pane.scroller.clientHeight, width = pane.scroller.clientWidth;
	const ctx = size(pane.canvas, width, high);
	pane.seen = high;
	for (const t of ticks(width).at) box(ctx, X(t), X(t) + 1, 0, high, theme.line, 0.6);
	for (let i = laneAt(pane, top); i < pane.lanes.length; i++) {
		const lane = pane.lanes[i], y = lane.top - top;
		if (y > high) break;
		box(ctx, 0, width, y + lane.height - 1, 1, theme.line, lane.depth ? 0.5 : 1);
		ctx.save();
		ctx.beginPath();
		ctx.rect(view.left - 1, y, width - view.left + 1, lane.height);
		ctx.clip();
		drawLane(ctx, lane, y);
		ctx.restore();
		drawName(ctx, lane, y);
	}
	box(ctx, view.left - 1, view.left, 0, high, theme.line, 1);
	if (pane.lanes.length === 0) write(ctx, pane.none, view.left + 10, 20, width - view.left - 20, theme.soft);
};
