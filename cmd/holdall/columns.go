package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
)

// columns is text in columns: the cells of each row.
type columns [][]string

func (t columns) drop(column int) {
	for n, row := range t {
		t[n] = slices.Delete(row, column, column+1)
	}
}

// widest is how wide a column gets at most: one long text is not to push all others away.
const widest = 48

func (t columns) lines() []string {
	widths := map[int]int{}
	for _, row := range t {
		for c, cell := range row {
			row[c] = plain.Line(cell)
			widths[c] = max(widths[c], min(utf8.RuneCountInString(row[c]), widest))
		}
	}
	lines := make([]string, len(t))
	for n, row := range t {
		var line strings.Builder
		for c, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", max(widths[c]-utf8.RuneCountInString(cell), 0)+2))
		}
		lines[n] = strings.TrimRight(line.String(), " ")
	}
	return lines
}
