package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
)

type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// output is where a command says what it has found: text for people, or JSON, one
// document or one a line, whose names of fields do not change.
type output struct {
	format format
	to     io.Writer
	colour bool
	failed error // to write a line of text
}

func (o *output) open(to io.Writer, getenv func(string) string) error {
	if o.format != formatText && o.format != formatJSON {
		return fmt.Errorf("--output is %q: text and json are known", string(o.format))
	}
	o.to = to
	o.colour = o.format == formatText && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && isTerminal(to)
	return nil
}

func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (o *output) asJSON() bool { return o.format == formatJSON }

// line writes a line of text for people; nothing if JSON was asked for.
func (o *output) line(text string, args ...any) {
	if !o.asJSON() {
		if _, err := fmt.Fprintf(o.to, text+"\n", args...); o.failed == nil {
			o.failed = err
		}
	}
}

// lines writes lines in which there is nothing that a terminal would obey.
func (o *output) lines(lines []string) {
	for _, line := range lines {
		o.line("%s", plain.Line(line))
	}
}

// json writes a value as one line of JSON; nothing if text was asked for.
func (o *output) json(value any) error {
	if !o.asJSON() {
		return nil
	}
	encoder := json.NewEncoder(o.to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// endWith writes a value as json does, and ends the command with a code.
func (o *output) endWith(code int, value any) error {
	if err := o.json(value); err != nil || code == exitDone {
		return err
	}
	return &exit{code: code}
}

// What colours mean.
const (
	good    = "32"
	warning = "33"
	bad     = "31"
	faint   = "2"
)

// paint colours a text, where colours are seen.
func (o *output) paint(colour, text string) string {
	if !o.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
