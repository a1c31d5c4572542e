package httpapi_test

import (
	"strings"
	"testing"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/httpapi"
)

func TestCheckURLs(t *testing.T) {
	for template, want := range map[string]string{
		"":                                  "",
		"wss://{instance}.example.org/":     "",
		"ws://{address-host}:8188/":         "",
		"wss://media.example.org/{ordinal}": "",
		"wss://{name}.example.org/":         "has the placeholder {name}; there are {instance}",
		"wss://{instance.example.org/":      "placeholder",
		"https://{instance}/":               "give one such as wss://",
		"{instance}":                        "give one such as wss://",
		"wss://":                            "give one such as wss://",
	} {
		err := httpapi.CheckURLs(httpapi.URLs{WS: template})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", template, err)
		}
	}
	if err := httpapi.CheckURLs(httpapi.URLs{HTTP: "wss://x/"}); err == nil || !strings.HasPrefix(err.Error(), "url-http") {
		t.Errorf("got %v", err)
	}
}

func TestURLs_AnIPv6HostIsInBrackets(t *testing.T) {
	f, _ := example()
	f.placed.Instance.Address = "http://[fd00::1]:7088/admin"
	h := httpapi.New(map[string]httpapi.Served{"video": {Pool: f, URLs: httpapi.URLs{WS: "ws://{address-host}:8188/{instance}/{ordinal}"}}}, httpapi.Options{})
	if w := do(h, "GET /v1/pools/video/rooms/r", ""); !strings.Contains(w.Body.String(), `"urls":{"ws":"ws://[fd00::1]:8188/janus-1/1"}`) {
		t.Errorf("got %s", w.Body)
	}
}

func TestPin_TellsWhatClientsNeed(t *testing.T) {
	f, _ := example()
	h := httpapi.New(map[string]httpapi.Served{"video": {
		Pool: f, Token: func() string { return "a token" },
		ICEServers: []brokerapi.ICEServer{{URLs: []string{"turn:turn.example.org"}, Username: "u", Credential: "c"}},
	}}, httpapi.Options{})
	want := `"token":"a token","ice_servers":[{"urls":["turn:turn.example.org"],"username":"u","credential":"c"}]`
	if w := do(h, "GET /v1/pools/video/rooms/r", ""); !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %s, want %s in it", w.Body, want)
	}
}
