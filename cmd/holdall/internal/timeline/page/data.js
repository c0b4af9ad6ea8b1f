// What was recorded, as columns: unit 5 began at units.start[5].

const decode = (text) => {
	const raw = atob(text);
	return (n, differences) => {
		const to = new Float64Array(n);
		for (let i = 0, at = 0, before = 0; i < n; i++) {
			let value = 0, scale = 1, byte;
			do {
				byte = raw.charCodeAt(at++);
				value += (byte & 127) * scale;
				scale *= 128;
			} while (byte > 127);
			value = value % 2 ? -(value + 1) / 2 : value / 2;
			to[i] = before = differences ? before + value : value;
		}
		return to;
	};
};

// A time needs 64 bits, whatever else there is 32.
const times = new Set(["start", "length", "span", "at", "waited", "held"]);

const unpack = (table) => {
	const columns = { n: table.n };
	for (const [name, packed] of Object.entries(table.columns)) {
		const plain = name.replace("+", "");
		const wide = typeof packed === "number" ? new Float64Array(table.n).fill(packed) : decode(packed)(table.n, name !== plain);
		columns[plain] = times.has(plain) ? wide : Int32Array.from(wide);
	}
	return columns;
};

const parsed = JSON.parse(document.getElementById("data").textContent);
document.getElementById("data").textContent = "";
const { sources, lines, bad, length, strings, ways, kinds, markKinds } = parsed;
// Milliseconds of Unix time, with a fraction, which Date.parse leaves out.
const begin = Date.parse(parsed.begin) + Number("0." + (/\.\d{3}(\d+)/.exec(parsed.begin) || [0, "0"])[1]);
const [processes, keys, units, spans, waits, held, holds, marks] =
	["processes", "keys", "units", "spans", "waits", "held", "holds", "marks"].map((name) => {
		const table = unpack(parsed[name]);
		delete parsed[name];
		return table;
	});

const K = Object.fromEntries(kinds.map((name, n) => [name, n]));
const M = Object.fromEntries(markKinds.map((name, n) => [name, n]));
const W = Object.fromEntries(ways.map((name, n) => [name, n]));
const HELD = 0, TAKING = 1, TOLD = 2;
const FREED = 0, LOST = 1, BURIED = 2, STILL = 3;
const ENDED = 0, DIED = 1, NO_END = 2;
const NONE = -1;

const endOf = (columns) => {
	const end = new Float64Array(columns.n);
	for (let i = 0; i < columns.n; i++) end[i] = columns.start[i] + columns.length[i];
	return end;
};
units.end = endOf(units);
spans.end = endOf(spans);
holds.end = endOf(holds);

// offsets has where the elements of each group begin, if they stand one group after another.
const offsets = (counts) => {
	const to = new Int32Array(counts.length + 1);
	for (let i = 0; i < counts.length; i++) to[i + 1] = to[i] + counts[i];
	return to;
};

units.first = offsets(units.spans);
spans.unit = new Int32Array(spans.n);
for (let u = 0; u < units.n; u++) spans.unit.fill(u, units.first[u], units.first[u + 1]);
waits.heldFirst = offsets(Int32Array.from(waits.held));
waits.unit = Int32Array.from(waits.span, (s) => spans.unit[s]);
waits.start = Float64Array.from(waits.span, (s) => spans.start[s]);
waits.end = Float64Array.from(waits.span, (s) => spans.end[s]);
units.waited = new Float64Array(units.n);
for (let s = 0; s < spans.n; s++) if (spans.kind[s] === K.wait) units.waited[spans.unit[s]] += spans.length[s];
const waitOf = new Map();
for (let w = 0; w < waits.n; w++) waitOf.set(waits.span[w], w);

// group sorts elements into groups, in each by their order; that of an element may be none.
const group = (n, groups, of) => {
	const counts = new Int32Array(groups);
	for (let i = 0; i < n; i++) if (of(i) >= 0) counts[of(i)]++;
	const first = offsets(counts), to = new Int32Array(first[groups]), next = first.slice();
	for (let i = 0; i < n; i++) if (of(i) >= 0) to[next[of(i)]++] = i;
	return { first, to };
};

// byStart has the numbers of elements in the order of their start.
const byStart = (start) => {
	const order = new Int32Array(start.length).map((_, i) => i);
	return order.sort((x, y) => start[x] - start[y] || x - y);
};

// Rows are bars that do not overlap, so that a search by halves finds those that are seen.
// covered[i] is how much of the time the bars before the ith cover.
const makeRows = (columns, order, rowsOf, laneOf, rowOf) => {
	const base = offsets(rowsOf);
	const grouped = group(order.length, base[base.length - 1], (i) => laneOf(order[i]) < 0 ? NONE : base[laneOf(order[i])] + rowOf(order[i]));
	const refs = grouped.to.map((i) => order[i]);
	const covered = new Float64Array(refs.length + 1);
	for (let i = 0; i < refs.length; i++) covered[i + 1] = covered[i] + columns.end[refs[i]] - columns.start[refs[i]];
	return { columns, refs, covered, base, first: grouped.first };
};

const inOrder = (n) => new Int32Array(n).map((_, i) => i);
const unitRows = makeRows(units, inOrder(units.n), processes.rows, (u) => units.process[u], (u) => units.row[u]);
const holdRows = makeRows(holds, inOrder(holds.n), keys.holders, (h) => holds.key[h], (h) => holds.row[h]);
const waitRows = makeRows(waits, byStart(waits.start), keys.waiters, (w) => waits.key[w], (w) => waits.row[w]);

// What is to be seen from afar, and what belongs to no unit, stands above the units of its process.
const grave = new Set([M.paused, M.lost, M.buried, M["heartbeat failed"], M.unfinished, M.dropped]);
const aloft = (m) => grave.has(marks.kind[m]) || marks.kind[m] === M.started || marks.kind[m] === M.note || marks.kind[m] === M.recovered;

// Marks of a unit, of a key, and of a process without either.
const ofUnit = (m) => marks.of[m] !== NONE ? marks.of[m] : marks.unit[m];
const marksOfUnit = group(marks.n, units.n, ofUnit);
const marksOfKey = group(marks.n, keys.n, (m) => marks.key[m]);
const gravesOfKey = group(marks.n, keys.n, (m) => grave.has(marks.kind[m]) || marks.kind[m] === M.cleaned ? marks.key[m] : NONE);
const quietOfKey = group(marks.n, keys.n, (m) => grave.has(marks.kind[m]) || marks.kind[m] === M.cleaned ? NONE : marks.key[m]);
const gravesOfProcess = group(marks.n, processes.n, (m) => grave.has(marks.kind[m]) ? marks.process[m] : NONE);
const marksOfProcess = group(marks.n, processes.n, (m) => aloft(m) ? marks.process[m] : NONE);
const holdsOfUnit = group(holds.n, units.n, (h) => holds.unit[h]);
const fellBackOfKey = group(units.n, keys.n, (u) => units.key[u]);
const followersOf = group(units.n, units.n, (u) => units.leader[u]);
const waitsBehind = group(waits.n, units.n, (w) => waits.holder[w]);
const unitsOfProcess = new Int32Array(processes.n);
for (let u = 0; u < units.n; u++) unitsOfProcess[units.process[u]]++;
const keysBelow = group(keys.n, keys.n, (k) => keys.parent[k]);

function* members(grouped, n) {
	for (let i = grouped.first[n]; i < grouped.first[n + 1]; i++) yield grouped.to[i];
}

const text = (n) => strings[n];
const keyName = (k) => k === NONE ? "" : strings[keys.name[k]];
const processName = (p) => strings[processes.name[p]];
const outcomeOf = (u) => units.outcome[u] ? text(units.outcome[u])
	: units.fate[u] === DIED ? "its process died" : units.fate[u] === NO_END ? "no end recorded" : "ended";
const shortName = (name) => name.length > 12 ? name.slice(0, 8) + "…" : name;
const titleOf = (u) => text(units.id[u]) || shortName(text(units.name[u])) || ways[units.way[u]];
const took = (u) => units.end[u] - units.start[u];
