// Search: what is typed is looked for in the texts of units, their keys and their waits. "way:",
// "outcome:", "key:", "process:", "id:" and "unit:" look in one of them only.

const found = { list: [], at: -1, words: "" };

const fieldsOf = {
	unit: [units.name], id: [units.id], outcome: [], way: [], key: [], process: [],
	any: [units.name, units.id, units.purpose, units.err, units.token],
};

const search = (words) => {
	found.words = words.trim();
	found.at = -1;
	if (!found.words) {
		matched = matchedKey = null;
		found.list = [];
		return;
	}
	let field = "any", wanted = found.words.toLowerCase();
	const named = /^(unit|id|outcome|way|key|process):\s*(.*)$/.exec(wanted);
	if (named) [, field, wanted] = named;
	const hit = new Uint8Array(strings.length);
	for (let i = 1; i < strings.length; i++) hit[i] = strings[i].toLowerCase().includes(wanted) ? 1 : 0;
	matched = new Uint8Array(units.n);
	matchedKey = new Uint8Array(keys.n);
	const any = field === "any", fields = fieldsOf[field];
	const wayHit = ways.map((way) => (any || field === "way") && way.includes(wanted));
	const processHit = Array.from({ length: processes.n }, (_, p) => (any || field === "process") && hit[processes.name[p]]);
	for (let u = 0; u < units.n; u++) {
		matched[u] = wayHit[units.way[u]] || processHit[units.process[u]] || ((any || field === "outcome") && outcomeOf(u).toLowerCase().includes(wanted)) ||
			fields.some((column) => hit[column[u]]) ? 1 : 0;
	}
	if (any || field === "key") {
		for (let k = 0; k < keys.n; k++) matchedKey[k] = hit[keys.name[k]];
		for (let h = 0; h < holds.n; h++) if (holds.unit[h] !== NONE && matchedKey[holds.key[h]]) matched[holds.unit[h]] = 1;
		for (let w = 0; w < waits.n; w++) if (matchedKey[waits.key[w]]) matched[waits.unit[w]] = 1;
		for (let u = 0; u < units.n; u++) if (units.key[u] !== NONE && matchedKey[units.key[u]]) matched[u] = 1;
	}
	if (any) {
		for (let w = 0; w < waits.n; w++) if (hit[waits.owner[w]] || hit[waits.purpose[w]]) matched[waits.unit[w]] = 1;
		for (let s = 0; s < spans.n; s++) if (hit[spans.err[s]]) matched[spans.unit[s]] = 1;
	}
	found.list = [];
	for (let u = 0; u < units.n; u++) if (matched[u]) found.list.push(u);
	for (const u of found.list) if (any || field === "unit" || field === "id") for (const h of members(holdsOfUnit, u)) matchedKey[holds.key[h]] = 1;
};

// step goes to the next match, or to the next unit if nothing is searched for.
const step = (by) => {
	const list = matched ? found.list : null, n = list ? list.length : units.n;
	if (!n) return;
	if (list) {
		if (found.at < 0 && chosen.unit !== NONE) { // from where one is
			found.at = list.findIndex((u) => u >= chosen.unit);
			if (found.at < 0) found.at = by > 0 ? -1 : n;
			else if (list[found.at] !== chosen.unit && by > 0) found.at--;
		}
		found.at = (found.at + by + n) % n;
		choose(list[found.at], true);
	} else choose(((chosen.unit === NONE ? (by > 0 ? -1 : n) : chosen.unit) + by + n) % n, true);
	sayMatches();
};

const sayMatches = () => {
	const n = found.list.length;
	el("matches").textContent = !matched ? "" : found.at >= 0 ? `${found.at + 1} of ${n}` : n === 1 ? "1 unit" : `${n} units`;
};
