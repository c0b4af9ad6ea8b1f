package places

import (
	"go/ast"
	"go/token"
	"slices"
)

// statements drops each statement of a list, and swaps neighbours.
func (f *finder) statements(list []ast.Stmt) {
	for i, s := range list {
		if operator := dropped(s); operator != "" && !logs(s) {
			f.change(operator, s, "")
		}
		if i+1 < len(list) {
			next := list[i+1]
			first, second := effectOf(s), effectOf(next)
			if first != none && second != none && max(first, second) == outward && deferred(s) == deferred(next) {
				f.replace("swap", s.Pos(), next.End(), f.of(next)+"; "+f.of(s))
			}
		}
	}
}

// logs reports whether a statement only writes a log line, which no test is asked to read.
func logs(s ast.Stmt) bool {
	call, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	line, ok := call.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := line.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"DebugContext", "InfoContext", "WarnContext", "ErrorContext"}, method.Sel.Name)
}

// dropped names the operator that drops a statement; what declares cannot go.
func dropped(s ast.Stmt) string {
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			return "drop-assign"
		}
	case *ast.IncDecStmt:
		return "drop-assign"
	case *ast.ExprStmt:
		if _, receives := s.X.(*ast.UnaryExpr); receives {
			return "drop-receive"
		}
		return "drop-call"
	case *ast.SendStmt:
		return "drop-send"
	case *ast.GoStmt:
		return "drop-go"
	case *ast.DeferStmt:
		return "drop-defer"
	case *ast.IfStmt:
		return "drop-if"
	case *ast.ForStmt, *ast.RangeStmt:
		return "drop-loop"
	case *ast.LabeledStmt:
		return dropped(s.Stmt)
	case *ast.BranchStmt:
		return "drop-branch"
	case *ast.ReturnStmt:
		return "drop-return"
	}
	return ""
}

// effect is how far what a statement does can be seen, at the least.
type effect int

const (
	none    effect = iota // within the function
	inward                // by whoever shares a value with it
	outward               // by others: it calls, sends, receives or begins something
)

// effectOf does not look into expressions: what is worked out on the way can hardly
// be told from what is done. What stands on the wrong side of a lock is for the race
// detector to find.
func effectOf(s ast.Stmt) effect {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if locks(s.X) {
			return none
		}
		return outward
	case *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
		return outward
	case *ast.IncDecStmt:
		return reach(s.X)
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return none
		}
		far := none
		for _, to := range s.Lhs {
			far = max(far, reach(to))
		}
		return far
	}
	return none
}

func locks(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, method.Sel.Name)
}

// deferred reports whether a statement happens later: what stands beside it happens
// before it, in whatever order they stand.
func deferred(s ast.Stmt) bool {
	_, is := s.(*ast.DeferStmt)
	return is
}

// reach is that of a write to a place.
func reach(to ast.Expr) effect {
	if _, local := to.(*ast.Ident); local {
		return none
	}
	return inward
}
