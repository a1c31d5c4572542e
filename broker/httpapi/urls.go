package httpapi

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// URLs are templates of the URLs that clients connect to, with the placeholders
// {instance} (name), {ordinal} and {address-host} (host of the instance's admin
// address). "" = such a URL is not given.
type URLs struct{ WS, HTTP string }

var placeholder = regexp.MustCompile(`\{[^}]*\}?`)

// CheckURLs returns *broker.InvalidError for a template that cannot be filled.
func CheckURLs(u URLs) error {
	for _, t := range []struct{ field, template, schemes string }{{"url-ws", u.WS, "ws wss"}, {"url-http", u.HTTP, "http https"}} {
		if t.template == "" {
			continue
		}
		for _, p := range placeholder.FindAllString(t.template, -1) {
			if p != "{instance}" && p != "{ordinal}" && p != "{address-host}" {
				return invalid(t.field, "has the placeholder "+clip(p)+"; there are {instance}, {ordinal} and {address-host}")
			}
		}
		v, err := url.Parse(fill(t.template, broker.Instance{Name: "a-0", Address: "http://127.0.0.1"}))
		if err != nil || v.Host == "" || !strings.Contains(" "+t.schemes+" ", " "+v.Scheme+" ") {
			return invalid(t.field, "is no URL; give one such as "+strings.Fields(t.schemes)[1]+"://{instance}.example.org/")
		}
	}
	return nil
}

func (u URLs) of(in broker.Instance) *brokerapi.URLs {
	out := brokerapi.URLs{WS: fill(u.WS, in), HTTP: fill(u.HTTP, in)}
	if out == (brokerapi.URLs{}) {
		return nil
	}
	return &out
}

func fill(template string, in broker.Instance) string {
	if template == "" {
		return ""
	}
	host := ""
	if a, err := url.Parse(in.Address); err == nil {
		if host = a.Hostname(); strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
	}
	return strings.NewReplacer("{instance}", in.Name, "{ordinal}", strconv.Itoa(in.Ordinal), "{address-host}", host).Replace(template)
}
