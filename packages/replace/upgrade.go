package replace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
	"sigs.k8s.io/cluster-api/packages/replace/merge"
	"sigs.k8s.io/cluster-api/packages/replace/stage"
	"sigs.k8s.io/cluster-api/packages/retry"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// Replacer upgrades providers, one after the other.
type Replacer struct {
	Client client.WithWatch
	// Writer retries requests that may succeed later.
	Writer *apply.Writer
	// Timeout is how long each Deployment may take to become available.
	Timeout time.Duration
	// Report, which may be nil, is called with what is being done.
	Report func(state string)
	// KeepScale keeps replicas that users have raised. Without it, those of the components apply.
	KeepScale bool
}

// Target is an upgrade of one provider.
type Target struct {
	// Installed is the provider's entry in the inventory.
	Installed clusterctlv1.Provider
	// Components are those of the new version, for the namespace of the installed one.
	Components *components.Components
	// Present are the objects with the provider's labels, as package live finds them.
	Present []unstructured.Unstructured
}

// Check returns why the upgrade is impossible, or nil. It changes nothing.
func (u *Replacer) Check(t Target) error {
	if want, have := t.Installed.Namespace, t.Components.TargetNamespace; want != have {
		return fmt.Errorf("%s is installed in namespace %s and cannot be upgraded in %s", t.Installed.Name, want, have)
	}
	for i := range t.Components.Objects {
		desired := &t.Components.Objects[i]
		live := find(t.Present, desired)
		if desired.GetKind() != manifest.KindCRD || live == nil {
			continue
		}
		if _, err := storageversion.Plan(live, desired); err != nil {
			return fmt.Errorf("%s %s: %w", t.Installed.Name, t.Components.Version, err)
		}
	}
	return nil
}

// FailedError is an upgrade that failed, and after which everything is as before.
type FailedError struct {
	// Err is why it failed.
	Err error
	// Version is the version that was restored.
	Version string
	// Notes are what could not be restored, and why.
	Notes []string
}

// Error returns why the upgrade failed, and that it was rolled back.
func (e *FailedError) Error() string {
	text := fmt.Sprintf("%v: rolled back to %s", e.Err, e.Version)
	return strings.Join(append([]string{text}, e.Notes...), "; ")
}

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// Upgrade upgrades a provider. pending is the journal of an interrupted upgrade to the same version (see Continues), nil if
// there is none.
//
// If the new version does not start, or the API server rejects one of its objects, the previous objects are restored, and the
// error is a FailedError. After any other error, such as a lost connection, the upgrade can be continued.
func (u *Replacer) Upgrade(ctx context.Context, t Target, pending *journal.Entry) error {
	r, err := u.load(ctx, t.Components.Objects, t.present())
	if err != nil {
		return err
	}
	entry := pending
	if entry == nil {
		u.report("recording the present objects")
		entry = newEntry(t, r.all())
		if err := u.Writer.Retry(ctx, func(ctx context.Context) error { return entry.Write(ctx, u.Client) }); err != nil {
			return err
		}
	}
	if u.KeepScale {
		t.Components = r.scaled(t.Components, pending)
	}
	err = u.upgrade(ctx, t, r, entry)
	if err == nil || ctx.Err() != nil || retry.Classify(err) == retry.Interrupted {
		return err
	}
	u.report("failed, rolling back to %s", entry.Provider.Version)
	notes, rollBackErr := u.RollBack(ctx, entry)
	if rollBackErr != nil {
		return fmt.Errorf("%w; and it cannot be rolled back to %s, because of another error: %w", err, entry.Provider.Version, rollBackErr)
	}
	return &FailedError{Err: err, Version: entry.Provider.Version, Notes: notes}
}

// scaled returns the components with the replicas that users have set. pending may be nil.
func (r *run) scaled(c *components.Components, pending *journal.Entry) *components.Components {
	out := *c
	out.Objects = slices.Clone(c.Objects)
	for i := range out.Objects {
		desired := &out.Objects[i]
		if live := r.get(desired); live != nil {
			out.Objects[i] = *merge.Scaled(live, desired)
		} else if pending != nil {
			if before := find(pending.Objects, desired); before != nil {
				out.Objects[i] = *merge.Recorded(before, desired)
			}
		}
	}
	return &out
}

func (u *Replacer) upgrade(ctx context.Context, t Target, r *run, entry *journal.Entry) error {
	if err := r.execute(ctx, stage.Plan(t.Components.Objects, r.all())); err != nil {
		return err
	}
	if err := r.removeOrphans(ctx, t.Installed.Namespace); err != nil {
		return err
	}
	if err := u.record(ctx, t.Components.Inventory()); err != nil {
		return err
	}
	return u.end(ctx, entry)
}

// record writes the inventory.
func (u *Replacer) record(ctx context.Context, p *clusterctlv1.Provider) error {
	if err := inventory.Record(ctx, u.Writer, p); err != nil {
		return fmt.Errorf("cannot record %s %s in the inventory: %w", p.Name, p.Version, err)
	}
	return nil
}

// end deletes the journal.
func (u *Replacer) end(ctx context.Context, entry *journal.Entry) error {
	return u.Writer.Retry(ctx, func(ctx context.Context) error { return entry.Delete(ctx, u.Client) })
}

func (u *Replacer) report(format string, args ...any) {
	if u.Report != nil {
		u.Report(fmt.Sprintf(format, args...))
	}
}

// present returns the provider's own objects: not those in other namespaces, and not the journal.
func (t Target) present() []unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(t.Present), func(o unstructured.Unstructured) bool {
		elsewhere := o.GetNamespace() != "" && o.GetNamespace() != t.Installed.Namespace
		other := o.GetKind() == "Namespace" && o.GetName() != t.Installed.Namespace
		return elsewhere || other || o.GetLabels()[clusterctlv1.ClusterctlCoreLabel] == journal.Label
	})
}

func newEntry(t Target, live []unstructured.Unstructured) *journal.Entry {
	entry := &journal.Entry{Provider: t.Installed, Version: t.Components.Version, Targets: identities(t.Components.Objects)}
	for i := range live {
		entry.Objects = append(entry.Objects, merge.Snapshot(&live[i]))
	}
	return entry
}

// Continues reports whether the journal is of an interrupted upgrade to the same version, with the same objects, so that
// Upgrade can continue it. Otherwise it must be rolled back first.
func Continues(entry *journal.Entry, c *components.Components) bool {
	return entry.Version == c.Version && slices.EqualFunc(entry.Targets, identities(c.Objects), func(a, b unstructured.Unstructured) bool {
		return manifest.KeyOf(&a) == manifest.KeyOf(&b)
	})
}

func identities(objects []unstructured.Unstructured) []unstructured.Unstructured {
	var list []unstructured.Unstructured
	for i := range objects {
		list = append(list, *manifest.Identity(&objects[i]))
	}
	return list
}

// find returns the object with the same identity, or nil.
func find(objects []unstructured.Unstructured, o *unstructured.Unstructured) *unstructured.Unstructured {
	i := slices.IndexFunc(objects, func(other unstructured.Unstructured) bool { return manifest.KeyOf(&other) == manifest.KeyOf(o) })
	if i < 0 {
		return nil
	}
	return &objects[i]
}
