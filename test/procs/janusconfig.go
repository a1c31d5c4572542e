package procs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The plugins and transports that no test needs; Debian's Janus loads all that it has.
const (
	idlePlugins = "libjanus_audiobridge.so,libjanus_duktape.so,libjanus_lua.so,libjanus_nosip.so,libjanus_recordplay.so,libjanus_sip.so," +
		"libjanus_textroom.so,libjanus_videocall.so,libjanus_voicemail.so,libjanus_streaming.so"
	idleTransports = "libjanus_rabbitmq.so,libjanus_mqtt.so,libjanus_nanomsg.so,libjanus_pfunix.so"
)

// section is one group of a libconfig file, in order.
type section struct {
	name     string
	settings []setting
}

type setting struct {
	name  string
	value any // string, int or bool
}

// writeConfig writes the folder that Janus is started with.
func (o JanusOptions) writeConfig() error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of Janus: %w", err)
	}
	lib, err := janusLibrary()
	if err != nil {
		return err
	}
	for name, sections := range o.files(lib) {
		if err := os.WriteFile(filepath.Join(o.Dir, name), []byte(render(sections)), 0o600); err != nil {
			return fmt.Errorf("write the configuration of Janus: %w", err)
		}
	}
	return nil
}

func (o JanusOptions) files(lib string) map[string][]section {
	plugins := idlePlugins
	if o.NoVideoroom {
		plugins += ",libjanus_videoroom.so"
	}
	general := []setting{
		{"configs_folder", o.Dir},
		{"plugins_folder", filepath.Join(lib, "plugins")},
		{"transports_folder", filepath.Join(lib, "transports")},
		{"events_folder", filepath.Join(lib, "events")},
		{"loggers_folder", filepath.Join(lib, "loggers")},
		{"debug_level", 4},
		{"debug_colors", false},
		{"admin_secret", o.AdminSecret},
		{"server_name", o.Name},
		{"session_timeout", o.SessionTimeout},
	}
	if o.APISecret != "" {
		general = append(general, setting{"api_secret", o.APISecret})
	}
	if o.TokenSecret != "" {
		general = append(general, setting{"token_auth", true}, setting{"token_auth_secret", o.TokenSecret})
	}
	if o.EventLoops > 0 {
		general = append(general, setting{"event_loops", o.EventLoops})
	}
	var nat []setting
	if o.ICEInterface != "" {
		nat = append(nat, setting{"ice_enforce_list", o.ICEInterface})
	}
	videoroom := []setting{{"string_ids", o.StringIDs}}
	if o.AdminKey != "" {
		videoroom = append(videoroom, setting{"admin_key", o.AdminKey})
	}
	return map[string][]section{
		"janus.jcfg": {
			{"general", general},
			{"media", []setting{{"rtp_port_range", o.RTPPorts}}},
			{"nat", nat},
			{"plugins", []setting{{"disable", plugins}}},
			{"transports", []setting{{"disable", idleTransports}}},
			{"events", []setting{{"broadcast", false}}},
		},
		"janus.transport.http.jcfg": {
			{"general", []setting{{"json", "compact"}, {"base_path", "/janus"}, {"http", true}, {"port", o.HTTPPort}, {"ip", o.IP}, {"https", false}}},
			{"admin", []setting{{"admin_base_path", "/admin"}, {"admin_http", !o.AdminOff}, {"admin_port", o.AdminPort}, {"admin_ip", o.IP}, {"admin_https", false}}},
		},
		"janus.transport.websockets.jcfg": {
			{"general", []setting{{"json", "compact"}, {"ws", true}, {"ws_port", o.WSPort}, {"ws_ip", o.IP}, {"wss", false}}},
			{"admin", []setting{{"admin_ws", false}, {"admin_wss", false}}},
		},
		"janus.plugin.videoroom.jcfg": {{"general", videoroom}},
	}
}

func render(sections []section) string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "%s: {\n", s.name)
		for _, v := range s.settings {
			if text, ok := v.value.(string); ok {
				v.value = strconv.Quote(text)
			}
			fmt.Fprintf(&b, "\t%s = %v\n", v.name, v.value)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// janusLibrary returns the folder of Janus's plugins and transports.
func janusLibrary() (string, error) {
	for _, pattern := range []string{"/usr/lib/*/janus", "/usr/lib/janus", "/usr/local/lib/janus", "/opt/janus/lib/janus"} {
		found, err := filepath.Glob(filepath.Join(pattern, "plugins"))
		if err == nil && len(found) > 0 {
			return filepath.Dir(found[0]), nil
		}
	}
	return "", fmt.Errorf("the plugins of janus are %w: looked under /usr/lib, /usr/local/lib and /opt/janus", ErrNotInstalled)
}
