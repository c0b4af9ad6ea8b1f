package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Eval is the value of an expression in the page, as JSON has it.
func Eval[T any](p *Page, script string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](script))
}

// pollEvery is the time between two looks at a page: each costs its process and this one some milliseconds.
const pollEvery = 50 * time.Millisecond

// Until waits until an expression is true in a page that is loaded, across the pages that follow it: the
// location is another before what it leads to is there.
func (p *Page) Until(script string) {
	p.t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < aLongTime; time.Sleep(pollEvery) {
		var is bool
		if is, err = chromedp.Run(p.ctx, chromedp.Evaluate[bool]("document.readyState === 'complete' && !!("+script+")")); err == nil && is {
			return
		}
	}
	p.t.Fatalf("it does not become true: %s (%v); the page says:\n%s\nand complains of: %q", script, err, p.Text("body"), p.Complaints())
}

// UntilText waits until an element has a text in it.
func (p *Page) UntilText(selector, text string) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%s?.innerText.includes(%s)", find(selector), quoted(text)))
}

// find finds an element, in JavaScript: by what it is now, for a page that goes on puts others in its place.
func find(selector string) string { return "document.querySelector(" + quoted(selector) + ")" }

// Text is what is seen of the first element that a CSS selector finds; it must find one.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return Eval[string](p, find(selector)+".innerText.trim()")
}

// Click clicks an element with the mouse, once it is there and the page is loaded and painted: before that, it
// may move, and Chromium drops what is clicked.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.Until("performance.getEntriesByType('paint').length && " + find(selector))
	at := Eval[struct{ X, Y float64 }](p, `(() => {
		const found = `+find(selector)+`;
		found.scrollIntoView({ block: "center", behavior: "instant" });
		const { left, top, width, height } = found.getBoundingClientRect();
		return { X: left + width / 2, Y: top + height / 2 };
	})()`)
	p.Do(chromedp.MouseClickXY(at.X, at.Y))
}

// Type types into the element that has the focus, which may be keys of package kb.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(text))
}

// Tab moves the focus with the keyboard, and returns what has it then as a screen reader names it:
// its role and its name.
func (p *Page) Tab() string {
	p.t.Helper()
	p.Type(kb.Tab)
	for _, n := range p.Accessible() {
		if n.Focused {
			return n.Role + " " + n.Name
		}
	}
	return ""
}

// Node is a part of the page as a screen reader has it.
type Node struct {
	Role, Name, Description string
	Focused                 bool
}

// Accessible is the page as a screen reader has it, in its order. What is hidden from it is left out, and
// so is what has neither name nor meaning.
func (p *Page) Accessible() (nodes []Node) {
	p.t.Helper()
	call(p, accessibility.Enable, cdp.Empty{})
	for _, n := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		node := Node{Role: textOf(n.Role), Name: textOf(n.Name), Description: textOf(n.Description)}
		switch node.Role {
		case "", "none", "generic", "InlineTextBox":
			continue
		}
		for _, property := range n.Properties {
			node.Focused = node.Focused || property.Name == accessibility.PropertyNameFocused && textOf(property.Value) == "true"
		}
		if node.Role == "RootWebArea" {
			node.Focused = false // which it has with whatever is in it
		}
		if !n.Ignored {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func textOf(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var text string
	if json.Unmarshal([]byte(v.Value), &text) != nil {
		text = string(v.Value)
	}
	return text
}

// Overflow is how many pixels the page is wider than its window.
func (p *Page) Overflow() int {
	p.t.Helper()
	return Eval[int](p, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
}

// Screenshot takes the whole page, into the folder that [Screenshots] names.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	folder := os.Getenv(Screenshots)
	if folder == "" {
		return
	}
	png := run(p, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600); err != nil { //nolint:gosec // a folder of the tester's own
		p.t.Fatal(err)
	}
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // of a string it never fails
	return string(b)
}
