package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/progress"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/lock"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// Applier upgrades providers. Running the same upgrade again continues an interrupted one.
type Applier struct {
	IO *iostreams.Streams
	Planner
	// Backoff is used to retry failed writes.
	Backoff wait.Backoff
	// Hold runs a function while no other process upgrades providers of the management cluster.
	Hold func(ctx context.Context, run func(context.Context) error) error
	// Timeout is how long each Deployment may take to become available.
	Timeout time.Duration
}

// Apply does what is requested, or changes nothing if a check fails, except that an interrupted upgrade whose version is gone
// is put back, and journals of completed upgrades are deleted.
func (a *Applier) Apply(ctx context.Context, r Request) error {
	return a.Hold(ctx, func(ctx context.Context) error {
		err := a.apply(ctx, r)
		if cause := context.Cause(ctx); errors.Is(cause, lock.ErrLost) {
			return cause // Whatever failed then is due to it.
		}
		return err
	})
}

func (a *Applier) apply(ctx context.Context, r Request) error {
	state, err := a.Inspect(ctx)
	if err != nil {
		return err
	}
	// They have copies of Secrets, and are not needed any more.
	for _, entry := range state.Ended {
		if err := entry.Delete(ctx, a.Cluster.Client); err != nil {
			return err
		}
	}
	work, err := a.Plan(ctx, state, r)
	switch {
	case err == nil:
		return a.execute(ctx, work)
	case len(state.Interrupted) == 0:
		return err
	case errors.Is(err, repository.ErrNotFound):
		return errors.Join(err, a.putBack(ctx, state.Interrupted))
	}
	return fmt.Errorf("%w; the interrupted upgrade of %s stays as it is until this works, or until you put it back with `clusterctl upgrade apply` and the former version",
		err, describe(state.Interrupted))
}

func describe(entries []*journal.Entry) string {
	var list []string
	for _, e := range entries {
		list = append(list, fmt.Sprintf("%s from %s to %s", e.Provider.Name, e.Provider.Version, e.Version))
	}
	return strings.Join(list, ", ")
}

func (a *Applier) writer() *apply.Writer {
	return &apply.Writer{Client: a.Cluster.Client, Backoff: a.Backoff}
}

func (a *Applier) upgrader(report func(string)) *replace.Replacer {
	return &replace.Replacer{Client: a.Cluster.Client, Writer: a.writer(), Timeout: a.Timeout, Report: report}
}

func (a *Applier) execute(ctx context.Context, w *Work) error {
	if err := a.putBack(ctx, w.PutBack); err != nil {
		return err
	}
	if len(w.PutBack) > 0 && len(w.Upgrades) > 0 {
		if err := a.Refresh(ctx, w.Upgrades); err != nil {
			return err
		}
	}
	if len(w.Upgrades) == 0 {
		if len(w.PutBack) == 0 {
			a.IO.Infof("All providers are up to date")
		}
		return nil
	}
	if w.CertManager != nil {
		if w.CertManager.Version != "" {
			a.IO.Infof("Upgrading cert-manager to %s", w.CertManager.Version)
		}
		a.IO.Infof("Waiting for cert-manager")
		if err := w.CertManager.Apply(ctx, a.writer()); err != nil {
			return err
		}
	}
	return a.upgrade(ctx, w.Upgrades)
}

// putBack undoes interrupted upgrades.
func (a *Applier) putBack(ctx context.Context, entries []*journal.Entry) error {
	for _, entry := range entries {
		a.IO.Infof("Putting back the interrupted upgrade of %s", describe([]*journal.Entry{entry}))
		notes, err := a.upgrader(func(state string) { a.IO.Logf(1, "%s: %s", entry.Provider.Name, state) }).PutBack(ctx, entry)
		if err != nil {
			return fmt.Errorf("%s %s could not be put back, run the same command again: %w", entry.Provider.Name, entry.Provider.Version, err)
		}
		for _, note := range notes {
			a.IO.Warnf("%s: %s", entry.Provider.Name, note)
		}
		a.IO.Infof("%s %s was put back", entry.Provider.Name, entry.Provider.Version)
	}
	return nil
}

func (a *Applier) upgrade(ctx context.Context, steps []Step) error {
	var names []string
	for _, s := range steps {
		names = append(names, s.Installed.Name)
	}
	board := progress.Show(a.IO, names...)
	for i, s := range steps {
		name := s.Installed.Name
		report := func(state string) {
			board.Set(name, fmt.Sprintf("%s -> %s: %s", s.Installed.Version, s.Components.Version, state))
		}
		err := a.upgrader(report).Upgrade(ctx, s.Target, s.Pending)
		if err == nil {
			report("upgraded")
			continue
		}
		if failed, ok := errors.AsType[*replace.FailedError](err); ok {
			report("failed, " + failed.Version + " was put back")
			return fmt.Errorf("%s was not upgraded to %s: %w%s", name, s.Components.Version, err, others(steps, i))
		}
		report("interrupted")
		return fmt.Errorf("the upgrade of %s to %s is incomplete; run the same command again to continue: %w", name, s.Components.Version, err)
	}
	return nil
}

// others describes what happened to the providers before and after the one that failed.
func others(steps []Step, failed int) string {
	var text strings.Builder
	for i, s := range steps {
		switch {
		case i < failed:
			fmt.Fprintf(&text, "; %s was upgraded to %s", s.Installed.Name, s.Components.Version)
		case i > failed:
			fmt.Fprintf(&text, "; %s was not touched", s.Installed.Name)
		}
	}
	return text.String()
}
