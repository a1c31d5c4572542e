package httpapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/roomscaler/roomscaler/broker"
)

// MinToken is the least length of a token in bytes.
const MinToken = 16

// recheck is how often a token file is looked at for changes.
const recheck = time.Second

// Tokens are the tokens of a file, read again when it changes. The file is YAML: a map from token
// to scope, or to scope and the one pool that it is good for:
//
//	kJ2…: application
//	9fW…: {scope: instance, pool: video}
//
// A change that cannot be read leaves the tokens as they were, and is logged once.
type Tokens struct {
	path  string
	log   *slog.Logger
	state atomic.Pointer[tokenState]
	next  atomic.Int64 // unix ns of the next look at the file
}

type tokenState struct {
	raw  []byte
	list []token
	bad  string // the last error, so that it is logged once
}

type token struct {
	sum [sha256.Size]byte // comparing sums takes the same time for any two tokens
	who principal
}

// ReadTokens reads the token file. Errors name the file and line, never a token.
func ReadTokens(path string, log *slog.Logger) (*Tokens, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the token file: %w", err)
	}
	list, err := parseTokens(raw)
	if err != nil {
		return nil, fmt.Errorf("token file %s: %w", path, err)
	}
	t := &Tokens{path: path, log: log}
	t.state.Store(&tokenState{raw: raw, list: list})
	t.next.Store(time.Now().Add(recheck).UnixNano())
	return t, nil
}

// Has reports whether there is a token of this scope.
func (t *Tokens) Has(s Scope) bool {
	return slices.ContainsFunc(t.current().list, func(t token) bool { return t.who.scope == s })
}

func (t *Tokens) principal(authorization string) (principal, error) {
	kind, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(kind, "Bearer") || secret == "" {
		return principal{}, errUnauthorized
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	var found *principal
	for _, k := range t.current().list {
		if subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1 {
			found = &k.who
		}
	}
	if found == nil {
		return principal{}, errUnauthorized
	}
	return *found, nil
}

// current looks at the file when that is due; of concurrent callers one does, the
// others go on with what there is.
func (t *Tokens) current() *tokenState {
	due, now := t.next.Load(), time.Now()
	old := t.state.Load()
	if now.UnixNano() < due || !t.next.CompareAndSwap(due, now.Add(recheck).UnixNano()) {
		return old
	}
	raw, err := os.ReadFile(t.path)
	if err == nil && bytes.Equal(raw, old.raw) && old.bad == "" {
		return old
	}
	next := &tokenState{raw: raw}
	if err == nil {
		next.list, err = parseTokens(raw)
	}
	if err != nil {
		next.raw, next.list, next.bad = old.raw, old.list, err.Error()
		if next.bad != old.bad {
			t.log.Error("token file cannot be read again; the tokens stay as they were", "path", t.path, "error", err)
		}
	}
	t.state.Store(next)
	return next
}

func parseTokens(raw []byte) ([]token, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, errors.New("is no YAML; write one line per token, such as TOKEN: application") // the parser's text may quote a token
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode || len(doc.Content[0].Content) == 0 {
		return nil, errors.New("has no token; write one line per token, such as TOKEN: application")
	}
	var list []token
	seen := map[string]bool{}
	for i := 0; i < len(doc.Content[0].Content); i += 2 {
		key, value := doc.Content[0].Content[i], doc.Content[0].Content[i+1]
		var entry struct {
			Scope Scope
			Pool  string
		}
		if value.Kind == yaml.ScalarNode {
			entry.Scope = Scope(value.Value)
		} else if err := strict(value, &entry); err != nil {
			return nil, fmt.Errorf("line %d: give a scope, or {scope: …, pool: …}", value.Line)
		}
		switch {
		case len(key.Value) < MinToken || strings.ContainsAny(key.Value, " \t\r\n"):
			return nil, fmt.Errorf("line %d: a token needs at least %d bytes and no space", key.Line, MinToken)
		case seen[key.Value]:
			return nil, fmt.Errorf("line %d: a token is there twice", key.Line)
		case !slices.Contains(scopes, entry.Scope):
			return nil, fmt.Errorf("line %d: no such scope; there are application, instance, scaler, operator, metrics", value.Line)
		case entry.Pool != "" && broker.CheckPool(entry.Pool) != nil:
			return nil, fmt.Errorf("line %d: the pool is no name of a pool", value.Line)
		}
		seen[key.Value] = true
		list = append(list, token{sha256.Sum256([]byte(key.Value)), principal{scope: entry.Scope, pool: entry.Pool}})
	}
	return list, nil
}

func strict(n *yaml.Node, v any) error {
	b, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	return dec.Decode(v)
}
