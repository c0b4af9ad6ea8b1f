package main

import (
	"strings"
	"unicode/utf8"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
)

// columns is text in columns.
type columns struct {
	rows  [][]string
	paint []string // the colour of each row
}

// drop removes a column.
func (t *columns) drop(column int) {
	for n, row := range t.rows {
		t.rows[n] = append(row[:column:column], row[column+1:]...)
	}
}

// widest is how wide a column gets at most: one long text is not to push all others away.
const widest = 48

func (t *columns) lines() []string {
	widths := map[int]int{}
	for _, row := range t.rows {
		for c, cell := range row {
			row[c] = plain.Line(cell)
			cell = row[c]
			widths[c] = max(widths[c], min(utf8.RuneCountInString(cell), widest))
		}
	}
	lines := make([]string, len(t.rows))
	for n, row := range t.rows {
		var line strings.Builder
		for c, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", max(widths[c]-utf8.RuneCountInString(cell), 0)+2))
		}
		lines[n] = strings.TrimRight(line.String(), " ")
	}
	return lines
}
