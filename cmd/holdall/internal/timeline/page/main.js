// Everything together: what is drawn when, and which key does what.

let asked = 0;
const redraw = () => { if (!asked) asked = requestAnimationFrame(draw); };

const draw = () => {
	asked = 0;
	const began = performance.now();
	stats.bars = stats.rows = stats.marks = 0;
	view.width = panes.keys.scroller.clientWidth;
	view.left = Math.round(Math.max(100, Math.min(230, view.width * 0.2)));
	if (busyOnly) {
		layKeys();
		panes.keys.tall.style.height = panes.keys.height + "px";
	}
	drawMap(el("map"), view.width);
	drawAxis(el("axis"), view.width);
	drawPane(panes.keys, drawKeyLane);
	drawPane(panes.processes, drawProcessLane);
	const now = Math.round((((view.from + view.to) / 2) / length) * 100);
	el("map").setAttribute("aria-valuenow", Math.max(0, Math.min(100, now)));
	el("map").setAttribute("aria-valuetext", `${moment(Math.max(0, view.from), 1e3)} to ${moment(Math.min(length, view.to), 1e3)}`);
	stats.frames++;
	stats.took = performance.now() - began;
};

const relay = () => {
	layKeys();
	layProcesses();
	for (const pane of Object.values(panes)) pane.tall.style.height = pane.height + "px";
	resized();
};

let share = 0; // of the height that the keys have; 0 as much as suits them
const resized = () => {
	const picture = el("picture"), room = picture.clientHeight - el("map").offsetHeight - el("axis").offsetHeight - el("split").offsetHeight;
	const wants = share ? share * room : Math.min(panes.keys.height + 2, Math.max(room * 0.55, room - panes.processes.height - 2));
	const high = Math.round(Math.max(40, Math.min(room - 40, wants)));
	panes.keys.scroller.style.height = high + "px";
	panes.processes.scroller.style.height = Math.max(40, room - high) + "px";
	el("split").setAttribute("aria-valuenow", Math.round((high / room) * 100));
	redraw();
};

const splitAt = (y) => {
	const top = panes.keys.scroller.getBoundingClientRect().top, room = panes.keys.scroller.clientHeight + panes.processes.scroller.clientHeight;
	share = Math.max(0.1, Math.min(0.9, (y - top) / room));
	resized();
};

const dragged = (node, move) => {
	let down = false;
	node.addEventListener("pointerdown", (event) => { down = true; node.setPointerCapture(event.pointerId); move(event, true); });
	node.addEventListener("pointermove", (event) => { if (down) move(event, false); });
	for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => { down = false; });
};

const find = (typed) => {
	if (el("search").value !== typed) el("search").value = typed;
	search(typed);
	sayMatches();
	if (!el("table").hidden) { page = 0; showTable(); }
	redraw();
};

const toggleLegend = () => {
	const shows = el("legend").hidden;
	el("legend").hidden = !shows;
	el("help").setAttribute("aria-expanded", String(shows));
	if (shows) drawSigns();
	resized();
};

const pressed = (event) => {
	const typing = event.target.matches("input, select, textarea");
	if (event.key === "Escape") {
		if (typing && event.target.value && event.target.id === "search") find("");
		else if (typing) event.target.blur();
		else if (!el("table").hidden) toggleTable();
		else if (chosen.unit !== NONE) choose(NONE);
		else if (!el("legend").hidden) toggleLegend();
		else if (matched) find("");
		return;
	}
	if (typing) {
		if (event.key === "Enter" && event.target.id === "search") step(event.shiftKey ? -1 : 1);
		return;
	}
	if (event.ctrlKey || event.metaKey || event.altKey) return;
	const pane = panes.processes.scroller.contains(document.activeElement) ? panes.processes : panes.keys;
	const inPanel = el("panel").contains(event.target) || el("table").contains(event.target), onButton = event.target.matches("button, [role=separator]");
	const act = {
		"+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), 0: fit, "/": () => el("search").focus(), n: () => step(1), p: () => step(-1), t: toggleTable, f: () => foldAll(pane), "?": toggleLegend,
		z: () => chosen.unit !== NONE && zoomToUnit(chosen.unit),
		...(inPanel || onButton ? {} : {
			ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), ArrowUp: () => { pane.scroller.scrollTop -= 40; }, ArrowDown: () => { pane.scroller.scrollTop += 40; },
			Enter: () => chosen.unit !== NONE && el("panel").focus(), Home: () => show(0, view.to - view.from), End: () => show(length - (view.to - view.from), length),
		}),
	}[event.key];
	if (!act) return;
	event.preventDefault();
	act();
};

const begun = () => {
	for (const name of ["keys", "processes"]) {
		const scroller = el(name);
		panes[name] = { scroller, tall: scroller.firstElementChild, canvas: scroller.querySelector("canvas"), lanes: [], height: 0, seen: 0, none: name === "keys" ? "no unit held or waited for a key" : "no process" };
	}
	readTheme();
	header();
	legend();
	unfoldSome();
	for (const pane of Object.values(panes)) listen(pane);
	relay();
	fit();
	el("in").onclick = () => zoom(0.6);
	el("out").onclick = () => zoom(1 / 0.6);
	el("fit").onclick = fit;
	el("next").onclick = () => step(1);
	el("previous").onclick = () => step(-1);
	el("list").onclick = toggleTable;
	el("help").onclick = toggleLegend;
	el("colour").onchange = (event) => { colourBy = event.target.value; redraw(); };
	el("clock").onchange = (event) => { clock = event.target.value; if (chosen.unit !== NONE) showUnit(chosen.unit); if (!el("table").hidden) showTable(); redraw(); };
	el("busy").onchange = (event) => { busyOnly = event.target.checked; relay(); };
	let soon = 0;
	el("search").oninput = (event) => { clearTimeout(soon); soon = setTimeout(() => find(event.target.value), units.n > 20000 ? 180 : 30); };
	addEventListener("keydown", pressed);
	new ResizeObserver(resized).observe(el("picture"));
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTheme(); if (!el("legend").hidden) drawSigns(); redraw(); });
	let grip = 0;
	dragged(el("map"), (event, down) => {
		const t = mapT(event.offsetX, view.width), long = view.to - view.from;
		if (down) grip = t >= view.from && t <= view.to && long < length * 0.98 ? t - view.from : long / 2;
		show(t - grip, t - grip + long);
	});
	dragged(el("split"), (event) => splitAt(event.clientY));
	el("split").addEventListener("keydown", (event) => {
		const by = { ArrowUp: -24, ArrowDown: 24 }[event.key];
		if (by) { event.preventDefault(); splitAt(panes.keys.scroller.getBoundingClientRect().bottom + by); }
	});
	let named = location.hash.slice(1);
	try { named = decodeURIComponent(named); } catch { /* it is as somebody typed it */ }
	if (named) for (let u = 0; u < units.n; u++) if (text(units.name[u]) === named || text(units.id[u]) === named) { choose(u, true); break; }
	draw();
	performance.mark("drawn");
	// For whoever looks from the console, or tests the page.
	window.timeline = { view, stats, units, keys, spans, waits, held, holds, marks, processes, strings, panes, chosen, found, show, zoom, pan, fit, choose, hit, draw, X, T };
};

begun();
