// Colours, in light and dark, and what is painted with them.

const theme = {};
const readTheme = () => {
	const style = getComputedStyle(document.documentElement);
	for (const name of ["ink", "soft", "faint", "line", "back", "stripe", "red", "amber", "violet", "blue", "green", "grey", "dead"]) {
		theme[name] = style.getPropertyValue("--" + name).trim();
	}
	theme.dark = matchMedia("(prefers-color-scheme: dark)").matches;
	theme.font = style.getPropertyValue("--font").trim();
	theme.small = theme.font.replace("11px", "10px");
	theme.on = theme.dark ? "#fff" : "#10151d"; // on a bar
	hues.length = 0;
	patterns.clear();
	for (let n = 0; n < HUES; n++) {
		const hue = (n * 360) / HUES;
		hues.push(theme.dark ? `oklch(0.62 0.12 ${hue})` : `oklch(0.76 0.11 ${hue})`);
	}
};

const HUES = 30;
const hues = [], patterns = new Map();

// hashOf is the same for the same text, today and in another recording.
const hashOf = (name) => {
	let hash = 2166136261;
	for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
	hash ^= hash >>> 15;
	return (Math.imul(hash, 2246822519) ^ hash) >>> 0;
};

const unitHue = new Uint8Array(units.n), processHue = new Uint8Array(processes.n);
for (let u = 0; u < units.n; u++) unitHue[u] = hashOf(text(units.name[u]) || String(u)) % HUES;
// Few processes lie far apart on the wheel; which is which does not depend on the others.
for (let p = 0; p < processes.n; p++) processHue[p] = processes.n <= HUES / 2 ? (p * 11 + 4) % HUES : hashOf(processName(p)) % HUES;

let colourBy = "unit";
const colourOf = (u) => {
	if (u === NONE) return theme.grey;
	if (colourBy === "process") return hues[processHue[units.process[u]]];
	if (colourBy === "way") return [hues[12], hues[21], hues[5], hues[26], theme.grey][units.way[u]];
	return hues[unitHue[u]];
};

// hatched is a pattern of stripes in a colour.
const hatched = (ctx, colour) => {
	if (patterns.has(colour)) return patterns.get(colour);
	const size = 6, tile = document.createElement("canvas");
	tile.width = tile.height = size;
	const c = tile.getContext("2d");
	c.globalAlpha = 0.22;
	c.fillStyle = colour;
	c.fillRect(0, 0, size, size);
	c.globalAlpha = 1;
	c.strokeStyle = colour;
	c.lineWidth = 1.6;
	for (const shift of [-size, 0, size]) {
		c.beginPath();
		c.moveTo(shift - 1, size + 1);
		c.lineTo(shift + size + 1, -1);
		c.stroke();
	}
	const pattern = ctx.createPattern(tile, "repeat");
	patterns.set(colour, pattern);
	return pattern;
};

const kindColour = (kind) => [theme.blue, theme.amber, theme.green, theme.blue, theme.violet, theme.grey][kind];

// edgeOf is the colour of what became of a unit; none for what is as it should be.
const edgeOf = (u) => {
	switch (outcomeOf(u)) {
	case "not committed": case "lost": case "not acquired": return theme.red;
	case "in doubt": return theme.violet;
	case "fell back": return theme.amber;
	case "its process died": return theme.dead;
	default: return "";
	}
};
