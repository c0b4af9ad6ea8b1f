package timeline

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page
var files embed.FS

var pageTemplate = template.Must(template.ParseFS(files, "page/page.html"))

// scripts are the parts of the page's only script, in order.
var scripts = []string{"data.js", "lanes.js", "colours.js", "bars.js", "draw.js", "axis.js", "search.js", "panel.js", "table.js", "input.js", "main.js"}

// WritePage writes the model as a page of HTML that loads nothing: its script and its style stand
// in it, and no others are run, whatever the texts of the model say.
func WritePage(w io.Writer, m *Model) error {
	style, err := files.ReadFile("page/style.css")
	if err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		part, err := files.ReadFile("page/" + name)
		if err != nil {
			return err
		}
		script.Write(part)
	}
	script.WriteString("})();\n")
	data, err := json.Marshal(dataOf(m))
	if err != nil {
		return err
	}
	err = pageTemplate.Execute(w, map[string]any{
		"Title":      strings.Join(m.Sources, ", "),
		"Style":      template.CSS(style),           //nolint:gosec // ours
		"StyleHash":  hash(style),                   //
		"Script":     template.JS(script.String()),  //nolint:gosec // ours
		"ScriptHash": hash([]byte(script.String())), //
		"Data":       template.JS(data),             //nolint:gosec // no "<" is left in it: json.Marshal escapes them
		"Policy":     policy(hash(style), hash([]byte(script.String()))),
	})
	if err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	return nil
}

// policy has the browser load nothing, and run only what has one of these hashes.
func policy(style, script string) string {
	return "default-src 'none'; img-src data:; style-src '" + style + "'; script-src '" + script + "'; base-uri 'none'; form-action 'none'"
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
