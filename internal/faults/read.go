package faults

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"

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
	r := draws(seed, c, "token")
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	tx.ClientRequestToken = aws.String(hex.EncodeToString(b[:]))
}

func deepItem(item map[string]types.AttributeValue) map[string]types.AttributeValue {
	return *clone(&item)
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

// partiqlWords splits a statement into names, literals and single signs;
// quoted ones keep their quotes.
func partiqlWords(statement string) ([]string, error) {
	var words []string
	for rest := strings.TrimSpace(statement); rest != ""; rest = strings.TrimSpace(rest) {
		n := 1
		switch c := rest[0]; {
		case c == '"' || c == '\'':
			end, err := closingQuote(rest)
			if err != nil {
				return nil, err
			}
			n = end
		case isWord(rune(c)):
			if n = strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) }); n < 0 {
				n = len(rest)
			}
		}
		words, rest = append(words, rest[:n]), rest[n:]
	}
	return words, nil
}

// closingQuote returns where a quoted word ends; a doubled quote is part of it.
func closingQuote(s string) (int, error) {
	for i := 1; i < len(s); i++ {
		if s[i] != s[0] {
			continue
		}
		if i+1 < len(s) && s[i+1] == s[0] {
			i++
			continue
		}
		return i + 1, nil
	}
	return 0, fmt.Errorf("faults: no closing quote in %q", s)
}

func isWord(r rune) bool {
	return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func unquoted(w string) string {
	if len(w) < 2 || w[0] != '"' && w[0] != '\'' {
		return w
	}
	q := w[:1]
	return strings.ReplaceAll(w[1:len(w)-1], q+q, q)
}
