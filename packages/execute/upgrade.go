package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/lock"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
)

// Upgrader upgrades providers. Running the same upgrade again continues an interrupted one.
type Upgrader struct {
	Display Display
	Client  client.WithWatch
	Planner *choose.UpgradePlanner
	// Backoff is used to retry failed writes.
	Backoff wait.Backoff
	// Hold runs a function while no other process upgrades providers of the management cluster.
	Hold func(ctx context.Context, run func(context.Context) error) error
	// Timeout is how long each Deployment may take to become available.
	Timeout time.Duration
}

// Upgrade does what is requested, or changes nothing if a check fails, except that an interrupted upgrade to a version that no longer
// exists is rolled back, and journals of completed upgrades are deleted.
func (u *Upgrader) Upgrade(ctx context.Context, r choose.UpgradeRequest) error {
	return u.Hold(ctx, func(ctx context.Context) error {
		err := u.run(ctx, r)
		if cause := context.Cause(ctx); errors.Is(cause, lock.ErrLost) {
			return cause // Whatever failed then is due to it.
		}
		return err
	})
}

func (u *Upgrader) run(ctx context.Context, r choose.UpgradeRequest) error {
	state, err := u.Planner.Inspect(ctx)
	if err != nil {
		return err
	}
	// They have copies of Secrets, and are no longer needed.
	for _, entry := range state.Ended {
		if err := entry.Delete(ctx, u.Client); err != nil {
			return err
		}
	}
	work, err := u.Planner.Plan(ctx, state, r)
	if work == nil {
		return err
	}
	for _, warning := range work.Warnings {
		u.Display.Warnf("%s", warning)
	}
	for _, note := range work.Notes {
		u.Display.Infof("%s", note)
	}
	return errors.Join(append([]error{err, u.execute(ctx, work)}, work.Left...)...)
}

func (u *Upgrader) writer() *apply.Writer {
	return &apply.Writer{Client: u.Client, Backoff: u.Backoff}
}

func (u *Upgrader) upgrader(report func(string)) *replace.Replacer {
	return &replace.Replacer{Client: u.Client, Writer: u.writer(), Timeout: u.Timeout, Report: report, KeepScale: true}
}

func (u *Upgrader) execute(ctx context.Context, w *choose.Upgrade) error {
	if err := u.rollBack(ctx, w.RollBack); err != nil {
		return err
	}
	if len(w.RollBack) > 0 && len(w.Upgrades) > 0 {
		if err := u.Planner.Refresh(ctx, w.Upgrades); err != nil {
			return err
		}
	}
	if err := u.certManager(ctx, w); err != nil {
		return err
	}
	if len(w.Upgrades) == 0 {
		if len(w.RollBack) == 0 && len(w.Left) == 0 {
			u.Display.Infof("All providers are up to date")
		}
		return nil
	}
	return u.upgrade(ctx, w.Upgrades)
}

func (u *Upgrader) certManager(ctx context.Context, w *choose.Upgrade) error {
	if w.CertManager == nil {
		return nil
	}
	if w.CertManager.Version != "" {
		u.Display.Infof("Upgrading cert-manager to %s", w.CertManager.Version)
	}
	u.Display.Infof("Waiting for cert-manager")
	return w.CertManager.Apply(ctx, u.writer())
}

// rollBack rolls interrupted upgrades back.
func (u *Upgrader) rollBack(ctx context.Context, entries []*journal.Entry) error {
	for _, entry := range entries {
		u.Display.Infof("Rolling back the interrupted upgrade of %s", choose.Describe(entry))
		notes, err := u.upgrader(func(state string) { u.Display.Logf(1, "%s: %s", entry.Provider.Name, state) }).RollBack(ctx, entry)
		if err != nil {
			return fmt.Errorf("cannot roll %s back to %s, run the same command again: %w", entry.Provider.Name, entry.Provider.Version, err)
		}
		for _, note := range notes {
			u.Display.Warnf("%s: %s", entry.Provider.Name, note)
		}
		u.Display.Infof("%s was rolled back to %s", entry.Provider.Name, entry.Provider.Version)
	}
	return nil
}

func (u *Upgrader) upgrade(ctx context.Context, steps []choose.UpgradeStep) error {
	var names []string
	for _, s := range steps {
		names = append(names, s.Installed.Name)
	}
	lines := board(u.Display.Lines(names...))
	for i, s := range steps {
		name := s.Installed.Name
		report := func(state string) {
			lines.set(name, fmt.Sprintf("%s -> %s: %s", s.Installed.Version, s.Components.Version, state))
		}
		err := u.upgrader(report).Upgrade(ctx, s.Target, s.Pending)
		if err == nil {
			report("upgraded")
			continue
		}
		if failed, ok := errors.AsType[*replace.FailedError](err); ok {
			report("failed, rolled back to " + failed.Version)
			return fmt.Errorf("%s was not upgraded to %s: %w%s", name, s.Components.Version, err, others(steps, i))
		}
		report("interrupted")
		return fmt.Errorf("the upgrade of %s to %s is incomplete; run the same command again to continue: %w", name, s.Components.Version, err)
	}
	return nil
}

// others describes what happened to the providers before and after the one that failed.
func others(steps []choose.UpgradeStep, failed int) string {
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
