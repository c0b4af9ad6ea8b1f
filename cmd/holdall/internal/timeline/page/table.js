// The table of units: what the picture shows, for those who do not see it.

const PAGE = 200;
let page = 0;

const showTable = () => {
	const all = matched ? found.list : null, n = all ? all.length : units.n;
	page = Math.max(0, Math.min(page, Math.ceil(n / PAGE) - 1));
	const rows = [];
	for (let i = page * PAGE; i < Math.min(n, (page + 1) * PAGE); i++) {
		const u = all ? all[i] : i;
		let waited = 0;
		for (const s of spansOf(u)) if (spans.kind[s] === K.wait) waited += spans.end[s] - spans.start[s];
		rows.push(make("tr", {}, make("td", { class: "number" }, moment(units.start[u])), make("th", { scope: "row" }, linkTo(u)), make("td", {}, processName(units.process[u])),
			make("td", {}, ways[units.way[u]]), make("td", {}, make("span", { class: "outcome o-" + outcomeOf(u).replace(/\W+/g, "-") }, outcomeOf(u))),
			make("td", { class: "number" }, duration(took(u))), make("td", { class: "number" }, waited ? duration(waited) : "")));
	}
	const turn = (by, words) => make("button", { type: "button", disabled: by < 0 ? page === 0 : (page + 1) * PAGE >= n, onclick: () => { page += by; showTable(); el("table").focus(); } }, words);
	el("table").replaceChildren(
		make("div", { class: "top" }, make("h2", {}, matched ? `Units that match “${found.words}”` : "Units"), make("button", { type: "button", class: "close", "aria-label": "Close the table", onclick: () => toggleTable() }, "×")),
		make("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Table of units" }, make("table", {}, make("caption", {}, n ? `${page * PAGE + 1} to ${Math.min(n, (page + 1) * PAGE)} of ${n}, by their start` : "none"),
			make("thead", {}, make("tr", {}, ...["began", "unit", "process", "way", "outcome", "took", "waited"].map((name) => make("th", { scope: "col" }, name)))),
			make("tbody", {}, ...rows))),
		make("p", { class: "turn" }, turn(-1, "Earlier"), " ", turn(1, "Later")),
	);
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
