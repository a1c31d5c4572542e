package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

type openAPIOperation struct {
	Scopes     []string `json:"x-scopes"`
	Codes      []string `json:"x-codes"`
	Parameters []struct{ Name, In string }
	Body       *json.RawMessage `json:"requestBody"`
}

func TestOpenAPI(t *testing.T) {
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage
				Required   []string
			}
		}
	}
	if err := json.Unmarshal(openAPIDocument, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %q", doc.OpenAPI)
	}
	documented := map[string]openAPIOperation{}
	for path, item := range doc.Paths {
		for method, raw := range item {
			if method == "parameters" {
				continue
			}
			var op openAPIOperation
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			documented[strings.ToUpper(method)+" "+path] = op
		}
	}
	t.Run("each route is there with its scopes, parameters and body, and nothing else is", func(t *testing.T) {
		seen := map[string]bool{}
		for _, rt := range routes(http.NotFoundHandler()) {
			key := rt.method + " " + rt.pattern
			op, ok := documented[key]
			if !ok {
				t.Errorf("%s is missing", key)
				continue
			}
			seen[key] = true
			var may []string
			for _, s := range rt.scopes {
				may = append(may, string(s))
			}
			if may != nil && !slices.Contains(may, "operator") {
				may = append(may, "operator")
			}
			if diff := cmp.Diff(may, op.Scopes); diff != "" {
				t.Errorf("%s: scopes (-route +document):\n%s", key, diff)
			}
			var query []string
			for _, p := range op.Parameters {
				if p.In == "query" {
					query = append(query, p.Name)
				}
			}
			if diff := cmp.Diff(rt.query, query); diff != "" {
				t.Errorf("%s: parameters (-route +document):\n%s", key, diff)
			}
			if (rt.maxBody > 0) != (op.Body != nil) {
				t.Errorf("%s: body", key)
			}
		}
		for key := range documented {
			if !seen[key] {
				t.Errorf("%s is no route", key)
			}
		}
	})
	t.Run("each type has the fields that it has in Go", func(t *testing.T) {
		types := map[string]reflect.Type{}
		for _, v := range []any{brokerapi.Pin{}, brokerapi.URLs{}, brokerapi.ICEServer{}, brokerapi.CreateRoom{}, brokerapi.Rooms{}, brokerapi.Instance{}, brokerapi.Mark{},
			brokerapi.Instances{}, brokerapi.DrainRequest{}, brokerapi.Drain{}, brokerapi.LostRequest{}, brokerapi.Lost{}, brokerapi.PoolFacts{}, brokerapi.Queue{},
			brokerapi.Plan{}, brokerapi.PutPlan{}, brokerapi.Seal{}, brokerapi.Problem{}, brokerapi.SealRefusal{}} {
			types[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(types)), slices.Sorted(maps.Keys(doc.Components.Schemas))); diff != "" {
			t.Errorf("types (-Go +document):\n%s", diff)
		}
		for name, typ := range types {
			var fields, always []string
			for f := range typ.Fields() {
				tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
				if tag == "-" {
					continue
				}
				fields = append(fields, tag)
				if opts == "" {
					always = append(always, tag)
				}
			}
			slices.Sort(fields)
			schema := doc.Components.Schemas[name]
			if diff := cmp.Diff(fields, slices.Sorted(maps.Keys(schema.Properties))); diff != "" {
				t.Errorf("%s: fields (-Go +document):\n%s", name, diff)
			}
			if name == "DrainRequest" {
				always = nil // the owner follows from the token
			}
			slices.Sort(always)
			if diff := cmp.Diff(always, slices.Sorted(slices.Values(schema.Required))); diff != "" {
				t.Errorf("%s: required (-Go +document):\n%s", name, diff)
			}
		}
	})
	t.Run("each reference leads somewhere", func(t *testing.T) {
		for _, part := range strings.Split(string(openAPIDocument), `"$ref": "`)[1:] {
			ref, _, _ := strings.Cut(part, `"`)
			if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); ok {
				if _, ok := doc.Components.Schemas[name]; !ok {
					t.Errorf("%s leads nowhere", ref)
				}
			} else if ref != "#/components/responses/Problem" {
				t.Errorf("%s leads nowhere", ref)
			}
		}
	})
	t.Run("each code named is one of the table", func(t *testing.T) {
		known := map[string]bool{brokerapi.CodeSealRefused: true}
		for _, row := range problems {
			known[row.code] = true
		}
		for key, op := range documented {
			for _, code := range op.Codes {
				if !known[code] {
					t.Errorf("%s: %s", key, code)
				}
			}
		}
	})
}
