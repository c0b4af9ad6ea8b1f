// Lanes: one for each key that is unfolded, and one for each process. Where they stand is known
// for all of them, and drawn are those that are seen.

const HOLD = 15, WAIT = 9, STRIP = 5, UNIT = 19, NESTED = 9, BAND = 12, PAD = 4;
const FEW = 3, MANY = 40; // rows of those who wait, folded and not
const DEPTH = 4; // of spans within a unit

const openKeys = new Set(), openProcesses = new Set();
const panes = {};

const foldsKey = (k) => keysBelow.first[k + 1] > keysBelow.first[k] || keys.waiters[k] > FEW;
const hasBelow = (k) => keysBelow.first[k + 1] > keysBelow.first[k];
const ownBars = (k) => keys.holders[k] + keys.waiters[k] > 0 || fellBackOfKey.first[k + 1] > fellBackOfKey.first[k] ||
	marksOfKey.first[k + 1] > marksOfKey.first[k];

// unfoldSome unfolds what a first look has room for.
const unfoldSome = () => {
	for (let k = 0, lanes = keys.n && 1; k < keys.n && lanes < 40; k++) {
		if (keys.parent[k] !== NONE) continue;
		lanes++;
		const below = [...members(keysBelow, k)];
		if (below.length && lanes + below.length < 40) {
			openKeys.add(k);
			lanes += below.length;
		}
	}
	if (units.n <= 60) for (let p = 0; p < processes.n; p++) openProcesses.add(p);
};

const keyLane = (k) => {
	const open = openKeys.has(k);
	const holders = Math.min(Math.max(keys.holders[k], ownBars(k) ? 1 : 0), open ? MANY : 2);
	const waiters = Math.min(keys.waiters[k], open ? MANY : FEW);
	const rest = keys.waiters[k] > waiters ? STRIP : 0;
	const below = !open && hasBelow(k) ? (holders + waiters ? STRIP : HOLD) : 0;
	const height = Math.max(HOLD, holders * HOLD + waiters * WAIT + rest + below) + 2 * PAD;
	return { key: k, open, holders, waiters, rest, below, height, depth: keys.depth[k], folds: foldsKey(k) };
};

const processLane = (p) => {
	const open = openProcesses.has(p);
	const row = open ? UNIT + DEPTH * NESTED + 3 : UNIT + 2;
	return { process: p, open, row, height: BAND + processes.rows[p] * row + 2 * PAD, depth: 0, folds: true };
};

const stack = (pane, lanes) => {
	let top = 0;
	for (const lane of lanes) {
		lane.top = top;
		top += lane.height;
	}
	pane.lanes = lanes;
	pane.height = top;
};

// inUse reports whether a key, or one below it, is held or waited for in the time that is shown.
let busyOnly = false;
const inUse = (k) => {
	const any = (rows) => {
		for (let row = rows.base[k]; row < rows.base[k + 1]; row++) {
			const i = firstEnding(rows, rows.first[row], rows.first[row + 1], view.from);
			if (i < rows.first[row + 1] && rows.columns.start[rows.refs[i]] < view.to) return true;
		}
		return false;
	};
	if (any(holdRows) || any(waitRows)) return true;
	for (const below of members(keysBelow, k)) if (inUse(below)) return true;
	return false;
};

// hotness is for how long a key and those below it were waited for.
const hotness = Float64Array.from(keys.waited);
for (let k = keys.n - 1; k >= 0; k--) if (keys.parent[k] !== NONE) hotness[keys.parent[k]] += hotness[k];

const layKeys = () => {
	const lanes = [];
	const shown = new Uint8Array(keys.n);
	for (let k = 0; k < keys.n; k++) {
		const above = keys.parent[k];
		if (above !== NONE && !(shown[above] && openKeys.has(above))) continue;
		if (busyOnly && !inUse(k)) continue;
		shown[k] = 1;
		lanes.push(keyLane(k));
	}
	stack(panes.keys, lanes);
};

const layProcesses = () => {
	const lanes = [];
	for (let p = 0; p < processes.n; p++) lanes.push(processLane(p));
	stack(panes.processes, lanes);
};

// laneAt is the first lane that ends below y.
const laneAt = (pane, y) => {
	let low = 0, high = pane.lanes.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (pane.lanes[middle].top + pane.lanes[middle].height <= y) low = middle + 1; else high = middle;
	}
	return low;
};

// strips has, for a folded key, when any key below it was held: bars that do not overlap.
const strips = new Map();
const stripOf = (k) => {
	if (strips.has(k)) return strips.get(k);
	const bars = [];
	const visit = (n) => {
		for (const b of members(keysBelow, n)) {
			for (let i = holdRows.first[holdRows.base[b]]; i < holdRows.first[holdRows.base[b + 1]]; i++) bars.push(holdRows.refs[i]);
			visit(b);
		}
	};
	visit(k);
	bars.sort((x, y) => holds.start[x] - holds.start[y]);
	const start = [], end = [];
	for (const h of bars) {
		if (start.length && holds.start[h] <= end[end.length - 1]) end[end.length - 1] = Math.max(end[end.length - 1], holds.end[h]);
		else { start.push(holds.start[h]); end.push(holds.end[h]); }
	}
	const columns = { n: start.length, start: Float64Array.from(start), end: Float64Array.from(end) };
	const rows = makeRows(columns, inOrder(columns.n), [1], () => 0, () => 0);
	strips.set(k, rows);
	return rows;
};
