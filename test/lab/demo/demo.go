package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/test/lab/report"
)

// ErrVerdict: the run came to its end, and its verdict is bad.
var ErrVerdict = errors.New("the verdict is bad")

// Run does the whole demonstration. Everything that it started has ended when it returns. The last line on out is the
// verdict; the error is ErrVerdict when that is bad.
func Run(ctx context.Context, o Options, out io.Writer) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	begin := time.Now()
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	dir, err := logs(o)
	if err != nil {
		return err
	}
	defer func() {
		switch {
		case o.KeepLogs != "":
		case err == nil || errors.Is(err, context.Canceled):
			os.RemoveAll(dir)
		case !errors.Is(err, ErrVerdict): // which has named them above its verdict
			say("logs: %s", dir)
		}
	}()
	t, err := prepare(ctx, o, dir, say)
	if err != nil {
		return err
	}
	worlds, err := open(o, t, dir)
	if err != nil {
		return err
	}
	defer closeAll(worlds)
	if err := each(worlds, func(w *world) error { return w.start(ctx) }); err != nil {
		return err
	}
	store := "two brokers on Redis"
	if !t.redis {
		store = "one broker with the memory store"
	}
	about := fmt.Sprintf("%s, %s, target %d sessions per instance, seed %d", t.janus, store, o.target(), o.Seed)
	say("%s; started in %s", about, time.Since(begin).Round(time.Second/10))
	if err := play(ctx, out, worlds); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	verdicts := make([]Verdict, len(worlds))
	page := report.Page{Title: "Roomscaler: a pool of media servers that grows and shrinks with its rooms", Subtitle: about + ".", Settings: settings(o)}
	for i, w := range worlds {
		verdicts[i] = w.rec.verdict()
		page.Runs = append(page.Runs, w.rec.page(verdicts[i]))
	}
	closeAll(worlds)
	if err := save(o.Report, page); err != nil {
		return err
	}
	return conclude(o, verdicts, dir, say)
}

// conclude prints the verdicts, ours last.
func conclude(o Options, verdicts []Verdict, dir string, say func(string, ...any)) error {
	if o.Report != "" {
		say("report: %s", o.Report)
	}
	ours := verdicts[0]
	if ours.Others > 0 || ours.Refused > 0 {
		say("also: %d rooms cut by other causes, %d never opened", ours.Others, ours.Refused)
	}
	for _, want := range ours.Wants() {
		say("wanting: %s", want)
	}
	if !ours.Good() {
		say("logs: %s", dir)
	}
	for _, v := range verdicts[1:] {
		if v.ByScaleIn == 0 {
			say("the naive run cut no room this time; try another --seed")
		}
		say("%s", v.Line(true))
	}
	say("%s", ours.Line(false))
	if !ours.Good() {
		return ErrVerdict
	}
	return nil
}

func logs(o Options) (string, error) {
	if o.KeepLogs == "" {
		return os.MkdirTemp("", "roomscaler-demo-")
	}
	if err := os.MkdirAll(o.KeepLogs, 0o755); err != nil {
		return "", fmt.Errorf("--keep-logs: %w", err)
	}
	return filepath.Abs(o.KeepLogs)
}

// open makes the worlds: ours first.
func open(o Options, t tools, dir string) ([]*world, error) {
	var worlds []*world
	kinds := []bool{false}
	if o.Compare {
		kinds = append(kinds, true)
	}
	for _, naive := range kinds {
		w, err := newWorld(o, t, naive, dir)
		if err != nil {
			closeAll(worlds)
			return nil, err
		}
		worlds = append(worlds, w)
	}
	return worlds, nil
}

func closeAll(worlds []*world) {
	each(worlds, func(w *world) error { w.stop(); return nil })
}

// each does f with all worlds at once.
func each(worlds []*world, f func(*world) error) error {
	errs := make([]error, len(worlds))
	var wg sync.WaitGroup
	for i, w := range worlds {
		wg.Go(func() { errs[i] = f(w) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// play runs the worlds under the eyes of the view.
func play(ctx context.Context, out io.Writer, worlds []*world) error {
	view, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { show(view, out, worlds) })
	defer wg.Wait()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return each(worlds, func(w *world) error {
		err := w.run(ctx)
		if err != nil {
			cancel() // one world's failure ends the other
		}
		return err
	})
}

func settings(o Options) []report.Setting {
	list := []report.Setting{
		{Name: "seed", Value: strconv.FormatUint(o.Seed, 10)},
		{Name: "autoscaler's sync", Value: syncEvery.String()},
		{Name: "autoscaler's tolerance", Value: fmt.Sprint(o.Tolerance)},
		{Name: "cool-down (scaler's window, or the naive run's HPA window)", Value: o.cooldown().String()},
		{Name: "load's times stretched by", Value: fmt.Sprint(o.Scale)},
	}
	m := o.metadata()
	for _, k := range []string{"targetSessionsPerInstance", "spareSessions", "drainGracePeriod", "emptyDwell", "releaseGuard", "minInstances", "maxInstances"} {
		list = append(list, report.Setting{Name: k, Value: m[k]})
	}
	return list
}

func save(file string, p report.Page) error {
	if file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return errors.Join(report.Write(f, p), f.Close())
}
