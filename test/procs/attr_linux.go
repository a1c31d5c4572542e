package procs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitStopped returns when every thread is stopped, or the process has ended.
func (p *Process) awaitStopped() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !allStopped(p.pid) {
		select {
		case <-p.ended:
			return
		case <-tick.C:
		}
	}
}

// allStopped reads the state of each thread, which follows the last parenthesis of its stat file (proc(5)).
func allStopped(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false
	}
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		if i := bytes.LastIndexByte(b, ')'); i < 0 || i+2 >= len(b) || b[i+2] != 'T' {
			return false
		}
	}
	return len(stats) > 0
}
