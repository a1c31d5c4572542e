package procs

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// RedisOptions say how a Redis is set up. The zero value is good for a test: nothing of
// it stays on disk.
type RedisOptions struct {
	IP       string // default 127.0.0.1
	Port     int    // 0 = any that is free
	Dir      string // of its files; default a new folder that goes when it ends
	Password string // "" = none
	// Snapshot makes Redis write dump.rdb into Dir when it is stopped (not when it is killed) or told to save, and read it at its start.
	Snapshot bool
	// Sentinel makes it a Redis Sentinel; Config then says what it watches.
	Sentinel bool
	Config   []string // further lines of its configuration, such as "cluster-enabled yes"

	temp bool // Dir goes when the process ends
}

// Redis is a running redis-server.
type Redis struct {
	*Process
	o RedisOptions
}

// StartRedis starts a Redis and waits until it answers. The context bounds the start alone. An error wraps
// ErrNotInstalled where there is no Redis.
func StartRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	program, err := find("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	if o.IP == "" {
		o.IP = "127.0.0.1"
	}
	if err := fillPorts(o.IP, &o.Port); err != nil {
		return nil, err
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "redis-")
		if err != nil {
			return nil, fmt.Errorf("make a folder for Redis: %w", err)
		}
		o.Dir, o.temp = dir, true
	}
	cleanup := func() {
		if o.temp {
			os.RemoveAll(o.Dir)
		}
	}
	conf := filepath.Join(o.Dir, "redis.conf")
	if err := o.writeConfig(conf); err != nil {
		cleanup()
		return nil, err
	}
	args := []string{conf}
	if o.Sentinel {
		args = append(args, "--sentinel")
	}
	p, err := start(filepath.Join(o.Dir, "redis.log"), cleanup, program, args...)
	if err != nil {
		return nil, err
	}
	r := &Redis{Process: p, o: o}
	if err := p.await(ctx, "redis-server", r.ready); err != nil {
		p.Kill()
		return nil, err
	}
	return r, nil
}

// Options returns the options with all defaults filled in: starting a Redis with them is
// a restart at the same address.
func (r *Redis) Options() RedisOptions { return r.o }

// Addr returns host:port.
func (r *Redis) Addr() string { return hostPort(r.o.IP, r.o.Port) }

func (o RedisOptions) writeConfig(file string) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of Redis: %w", err)
	}
	lines := []string{"bind " + o.IP, "port " + strconv.Itoa(o.Port), "dir " + strconv.Quote(o.Dir)}
	if !o.Sentinel {
		lines = append(lines, "appendonly no", `save ""`)
	}
	if o.Snapshot {
		lines = append(lines, "save 3600 1") // makes a stop write it too
	}
	if o.Password != "" {
		lines = append(lines, "requirepass "+strconv.Quote(o.Password))
	}
	lines = append(lines, o.Config...)
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the configuration of Redis: %w", err)
	}
	return nil
}

// ready accepts any answer but "loading": a password may be wanted.
func (r *Redis) ready(ctx context.Context) error {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", r.Addr())
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.HasPrefix(line, "-LOADING") {
		return fmt.Errorf("redis is loading")
	}
	return nil
}
