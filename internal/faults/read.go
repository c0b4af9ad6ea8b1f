package faults

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// token is the request token of a transaction, or "".
func token(in any) string {
	if in, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
		return aws.ToString(in.ClientRequestToken)
	}
	return ""
}

// fillToken does for a request that may be executed twice what the SDK does
// for every request: copies of one sending carry one token.
func fillToken(in any, seed uint64, c Call) {
	tx, ok := in.(*dynamodb.TransactWriteItemsInput)
	if !ok || tx.ClientRequestToken != nil {
		return
	}
	var b [16]byte
	r := c.Rand(seed, "token")
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	tx.ClientRequestToken = aws.String(hex.EncodeToString(b[:]))
}

// project picks top-level attributes, which is all that a lock row's readers
// ask for; a deeper path is refused rather than answered wrongly.
func project(item map[string]types.AttributeValue, expression *string, names map[string]string) (map[string]types.AttributeValue, error) {
	if expression == nil || item == nil {
		return item, nil
	}
	picked := map[string]types.AttributeValue{}
	for path := range strings.SplitSeq(*expression, ",") {
		path = strings.TrimSpace(path)
		if strings.ContainsAny(path, ".[") {
			return nil, fmt.Errorf("faults: a window cannot project %q", path)
		}
		if name, ok := names[path]; ok {
			path = name
		}
		if v, ok := item[path]; ok {
			picked[path] = v
		}
	}
	return picked, nil
}

// rowOfStatement finds the row a PartiQL statement writes: UPDATE and DELETE
// with their whole key in the WHERE clause. "" if its table is unknown here.
func (s *Windows) rowOfStatement(st types.BatchStatementRequest) (string, error) {
	if len(s.keys) == 0 {
		return "", nil
	}
	words, err := partiqlWords(aws.ToString(st.Statement))
	if err != nil {
		return "", err
	}
	table, err := partiqlTable(words)
	if err != nil {
		return "", err
	}
	names, known := s.keys[table]
	if !known {
		return "", nil
	}
	key, where, parameter := map[string]types.AttributeValue{}, false, 0
	for i, w := range words {
		if w == "?" {
			parameter++
		}
		where = where || strings.EqualFold(w, "WHERE")
		if !where || i < 2 || words[i-1] != "=" {
			continue
		}
		name := unquoted(words[i-2])
		switch {
		case w == "?" && parameter <= len(st.Parameters):
			key[name] = st.Parameters[parameter-1]
		case strings.HasPrefix(w, "'"):
			key[name] = &types.AttributeValueMemberS{Value: unquoted(w)}
		}
	}
	whole := map[string]types.AttributeValue{}
	for _, name := range names {
		if key[name] == nil {
			return "", fmt.Errorf("faults: no key %q in the statement %q", name, aws.ToString(st.Statement))
		}
		whole[name] = key[name]
	}
	return s.row(&table, whole), nil
}

func partiqlTable(words []string) (string, error) {
	switch {
	case len(words) > 1 && strings.EqualFold(words[0], "UPDATE"):
		return unquoted(words[1]), nil
	case len(words) > 2 && strings.EqualFold(words[0], "DELETE") && strings.EqualFold(words[1], "FROM"):
		return unquoted(words[2]), nil
	}
	return "", errors.New("faults: only UPDATE and DELETE FROM are understood in a batch")
}

// partiqlWord is a name, a literal or a single sign; quoted ones keep their quotes, and a doubled
// quote is part of them.
var partiqlWord = regexp.MustCompile(`"(?:[^"]|"")*"|'(?:[^']|'')*'|[\pL\p{Nd}_-]+|\S`)

// wordsOf remembers the words of statements, which are few: their values are parameters.
var wordsOf sync.Map

func partiqlWords(statement string) ([]string, error) {
	if words, known := wordsOf.Load(statement); known {
		return words.([]string), nil
	}
	words := partiqlWord.FindAllString(statement, -1)
	if slices.Contains(words, `"`) || slices.Contains(words, "'") {
		return nil, fmt.Errorf("faults: no closing quote in %q", statement)
	}
	wordsOf.Store(statement, words)
	return words, nil
}

func unquoted(w string) string {
	if len(w) < 2 || w[0] != '"' && w[0] != '\'' {
		return w
	}
	q := w[:1]
	return strings.ReplaceAll(w[1:len(w)-1], q+q, q)
}
