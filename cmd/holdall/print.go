package main

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"
)

//go:embed templates/*.tmpl
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "templates/*.tmpl"))

// tables are those that are printed, with the policy for them.
type tables struct {
	Locks, HashKey, Units string // no Units: there is no unit table
	Records               []record
	Statements            []statement

	region, account string // of ARNs in the bare policy; empty for any
}

// record is a table of the user's own, that units write.
type record struct {
	Name, Label string // the label is Terraform's
}

var (
	tableName     = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,255}$`)
	noLabel       = regexp.MustCompile(`[^A-Za-z0-9_]`)
)

// newTables checks names, for all of them get into texts that have their own quotation.
func newTables(locks, hashKey, units string, records []string, operator bool, region, account string) (tables, error) {
	t := tables{Locks: locks, HashKey: hashKey, Units: units, region: region, account: account}
	for _, name := range append([]string{locks, units}, records...) {
		if name != "" && !tableName.MatchString(name) {
			return tables{}, fmt.Errorf("%q is not the name of a table", name)
		}
	}
	if !attributeName.MatchString(hashKey) {
		return tables{}, fmt.Errorf("--hash-key: %q cannot be printed: letters, digits, and _ . - are fine", hashKey)
	}
	labels := map[string]int{}
	for _, name := range records {
		label := "records_" + noLabel.ReplaceAllString(name, "_")
		if labels[label]++; labels[label] > 1 {
			label = fmt.Sprintf("%s_%d", label, labels[label])
		}
		t.Records = append(t.Records, record{name, label})
	}
	t.Statements = t.statements(operator)
	return t, nil
}

// own is a table that the template makes.
func (t tables) own(label, logical, name string) resource {
	return resource{"aws_dynamodb_table." + label + ".arn", "!GetAtt " + logical + ".Arn", t.arn(name)}
}

func (t tables) arn(name string) string {
	partition := "aws"
	switch {
	case strings.HasPrefix(t.region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(t.region, "us-gov-"):
		partition = "aws-us-gov"
	}
	return fmt.Sprintf("arn:%s:dynamodb:%s:%s:table/%s", partition, cmp.Or(t.region, "*"), cmp.Or(t.account, "*"), name)
}

// PolicyName is that of the policy in Terraform, which needs one: IAM's are at most 128 long.
func (t tables) PolicyName() string {
	name := "holdall-" + t.Locks
	return name[:min(len(name), 128)]
}

// printers print the tables, or the policy alone, by kind.
var printers = map[string]func(io.Writer, tables) error{
	"terraform":      func(w io.Writer, t tables) error { return templates.ExecuteTemplate(w, "terraform.tmpl", t) },
	"cloudformation": func(w io.Writer, t tables) error { return templates.ExecuteTemplate(w, "cloudformation.tmpl", t) },
	"iam":            printPolicy,
}

func printPolicy(w io.Writer, t tables) error {
	type allowed struct {
		Sid, Effect      string
		Action, Resource []string
	}
	var policy struct {
		Version   string
		Statement []allowed
	}
	policy.Version = "2012-10-17"
	for _, s := range t.Statements {
		one := allowed{Sid: s.Sid, Effect: "Allow"}
		for _, action := range s.Actions {
			one.Action = append(one.Action, "dynamodb:"+action)
		}
		for _, r := range s.Resources {
			one.Resource = append(one.Resource, r.ARN)
		}
		policy.Statement = append(policy.Statement, one)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(policy)
}
