// The table of units: what the picture shows, for those who do not see it.

const PAGE = 200;
let page = 0, sortedBy = "began";
const sorts = { began: null, took: (a, b) => took(b) - took(a) || a - b, waited: (a, b) => units.waited[b] - units.waited[a] || a - b };

const showTable = () => {
	let all = matched ? found.list : null;
	if (sorts[sortedBy]) all = Array.from(all || inOrder(units.n)).sort(sorts[sortedBy]);
	const n = all ? all.length : units.n;
	page = Math.max(0, Math.min(page, Math.ceil(n / PAGE) - 1));
	const rows = [];
	for (let i = page * PAGE; i < Math.min(n, (page + 1) * PAGE); i++) {
		const u = all ? all[i] : i;
		rows.push(make("tr", {}, make("td", { class: "number" }, moment(units.start[u])), make("th", { scope: "row" }, linkTo(u)), make("td", {}, processName(units.process[u])),
			make("td", {}, ways[units.way[u]]), make("td", {}, make("span", { class: "outcome o-" + outcomeOf(u).replace(/\W+/g, "-") }, outcomeOf(u))),
			make("td", { class: "number" }, duration(took(u))), make("td", { class: "number" }, units.waited[u] ? duration(units.waited[u]) : "")));
	}
	const turn = (by, words) => make("button", { type: "button", disabled: by < 0 ? page === 0 : (page + 1) * PAGE >= n, onclick: () => { page += by; showTable(); el("table").focus(); } }, words);
	el("table").replaceChildren(
		make("div", { class: "top" }, make("h2", {}, matched ? `Units that match “${found.words}”` : "Units"), make("button", { type: "button", class: "close", "aria-label": "Close the table", onclick: () => toggleTable() }, "×")),
		make("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Table of units" }, make("table", {}, make("caption", {}, n ? `${page * PAGE + 1} to ${Math.min(n, (page + 1) * PAGE)} of ${n}, ${{ began: "by their start", took: "the longest first", waited: "those first that waited longest" }[sortedBy]}` : "none"),
			make("thead", {}, make("tr", {}, ...["began", "unit", "process", "way", "outcome", "took", "waited"].map(heading))),
			make("tbody", {}, ...rows))),
		make("p", { class: "turn" }, turn(-1, "Earlier"), " ", turn(1, "Later")),
	);
};

const heading = (name) => {
	if (!(name in sorts)) return make("th", { scope: "col" }, name);
	const sort = () => { sortedBy = name; page = 0; showTable(); el("table").querySelector(`[data-by=${name}]`).focus(); };
	return make("th", { scope: "col", class: "number", "aria-sort": sortedBy !== name ? "none" : name === "began" ? "ascending" : "descending" },
		make("button", { type: "button", class: "link", "data-by": name, onclick: sort }, name + (sortedBy === name ? (name === "began" ? " ↑" : " ↓") : "")));
};

const toggleTable = () => {
	const table = el("table"), shows = table.hidden;
	table.hidden = !shows;
	el("list").setAttribute("aria-expanded", String(shows));
	if (shows) {
		page = 0;
		showTable();
		table.tabIndex = -1;
		table.focus();
	} else {
		table.replaceChildren();
		el("list").focus();
	}
	resized();
};

const unitsOfWay = (way) => units.way.reduce((n, w) => n + (w === way ? 1 : 0), 0);

// The header: what was recorded, and how many units came to what. A click shows which.
const header = () => {
	const date = new Date(begin).toISOString();
	const named = sources.length <= 3 ? sources.join(", ") : `${sources[0]} and ${sources.length - 1} more`;
	el("sources").textContent = named;
	el("sources").title = sources.join("\n");
	const apart = unitsOfWay(W["apart from units"]);
	el("summary").textContent = `${date.slice(0, 10)} ${date.slice(11, 19)} UTC, ${duration(length)}; ${plural(processes.n, "process").replace("processs", "processes")}, ${plural(keys.n, "key")}, ${plural(units.n - apart, "unit")}${apart ? `, ${plural(apart, "request")} apart from them` : ""}, ` +
		`${plural(lines, "event")}${bad ? `; ${bad === 1 ? "1 line was" : bad + " lines were"} no event` : ""}`;
	const count = (of) => {
		const counts = new Map();
		for (let u = 0; u < units.n; u++) if (units.way[u] !== W["apart from units"]) counts.set(of(u), (counts.get(of(u)) || 0) + 1);
		return [...counts].sort((a, b) => b[1] - a[1]);
	};
	const chips = (field, of, mark) => count(of).map(([name, n]) => make("button", { type: "button", class: "chip", onclick: () => find(`${field}: ${name}`) },
		mark ? make("i", { class: "dot o-" + name.replace(/\W+/g, "-") }) : "", name, make("b", {}, n.toLocaleString("en"))));
	el("counts").append(make("span", { class: "chips" }, ...chips("outcome", outcomeOf, true)), make("span", { class: "chips" }, ...chips("way", (u) => ways[units.way[u]])));
};
