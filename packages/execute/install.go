package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// Installer installs providers.
type Installer struct {
	Display Display
	Client  client.WithWatch
	// Backoff is used to retry failed writes.
	Backoff wait.Backoff
}

// Install installs the plan's providers one after the other.
//
// A provider is recorded in the inventory once its objects are written, the core provider after all others: an
// interrupted first run is a first run again, and installs what is missing.
func (i *Installer) Install(ctx context.Context, plan *choose.Installation) error {
	w := &apply.Writer{Client: i.Client, Backoff: i.Backoff}
	for _, p := range plan.Installed {
		i.Display.Infof("%s %s is already installed in namespace %s", p.ManifestLabel(), p.Version, p.Namespace)
	}
	if len(plan.Install) == 0 {
		i.Display.Infof("All requested providers are installed; to add others, specify them, for example with --infrastructure aws")
		return nil
	}
	crd, err := manifest.Parse(inventory.CRD())
	if err != nil {
		return err
	}
	if err := inventory.EnsureCRD(ctx, w, crd); err != nil {
		return err
	}
	if err := i.certManager(ctx, w, plan); err != nil {
		return err
	}
	return i.providers(ctx, w, plan.Install)
}

// providers writes the providers' objects in order, and the inventory concurrently: the API server delays the first
// objects of a new kind for two seconds, in which the providers can start.
func (i *Installer) providers(ctx context.Context, w *apply.Writer, list []*components.Components) error {
	lines := board(i.Display.Lines(labelsOf(list)...))
	record := func(c *components.Components) error {
		if err := inventory.Record(ctx, w, c.Inventory()); err != nil {
			return fmt.Errorf("%s %s is installed, but not recorded in the inventory; run the same command again to continue: %w",
				c.Provider.ManifestLabel(), c.Version, err)
		}
		lines.set(c.Provider.ManifestLabel(), fmt.Sprintf("%s: installed in namespace %s", c.Version, c.TargetNamespace))
		return nil
	}
	var records errgroup.Group
	var last []*components.Components
	for _, c := range list {
		lines.set(c.Provider.ManifestLabel(), fmt.Sprintf("%s: installing in namespace %s", c.Version, c.TargetNamespace))
		if err := w.Objects(ctx, c.Objects); err != nil {
			err = fmt.Errorf("%s %s is partially installed; run the same command again to continue: %w", c.Provider.ManifestLabel(), c.Version, err)
			return errors.Join(err, records.Wait())
		}
		if c.Provider.Type == clusterctlv1.CoreProviderType {
			last = append(last, c)
			continue
		}
		records.Go(func() error { return record(c) })
	}
	if err := records.Wait(); err != nil {
		return err
	}
	for _, c := range last {
		if err := record(c); err != nil {
			return err
		}
	}
	return nil
}

func (i *Installer) certManager(ctx context.Context, w *apply.Writer, plan *choose.Installation) error {
	if plan.CertManager == nil {
		return nil
	}
	if plan.CertManager.Version != "" {
		i.Display.Infof("Installing cert-manager %s", plan.CertManager.Version)
	}
	i.Display.Infof("Waiting for cert-manager")
	return plan.CertManager.Apply(ctx, w)
}

func labelsOf(list []*components.Components) []string {
	var names []string
	for _, c := range list {
		names = append(names, c.Provider.ManifestLabel())
	}
	return names
}

// Wait waits until the controllers of all the plan's providers are available, each for at most timeout.
func (i *Installer) Wait(ctx context.Context, plan *choose.Installation, timeout time.Duration) error {
	entries := slices.Clone(plan.Installed)
	for _, c := range plan.Install {
		entries = append(entries, *c.Inventory())
	}
	var names []string
	for n := range entries {
		names = append(names, entries[n].Name)
	}
	i.Display.Infof("Waiting for providers to be available")
	lines := board(i.Display.Lines(names...))
	results := make([]error, len(entries))
	var all sync.WaitGroup
	for n := range entries {
		all.Go(func() { results[n] = i.waitProvider(ctx, &entries[n], timeout, lines) })
	}
	all.Wait()
	return errors.Join(results...)
}

// observeTime is how long Deployments may take to be noticed: a moment, where something runs them.
const observeTime = 2 * time.Second

// WarnRefused warns of Deployments of the plan's providers that the cluster has refused at once, such as those that capi cannot run. It
// waits until all have been noticed, for observeTime at most, and not until they run.
func (i *Installer) WarnRefused(ctx context.Context, plan *choose.Installation) error {
	limited, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	for _, c := range plan.Install {
		list := &appsv1.DeploymentList{}
		labels := client.MatchingLabels{clusterv1.ProviderNameLabel: c.Provider.ManifestLabel()}
		if err := i.Client.List(ctx, list, client.InNamespace(c.TargetNamespace), labels); err != nil {
			return fmt.Errorf("cannot list the Deployments of %s: %w", c.Provider.ManifestLabel(), err)
		}
		for n := range list.Items {
			if reason := apply.Refused(limited, i.Client, client.ObjectKeyFromObject(&list.Items[n]), observeTime); reason != "" {
				i.Display.Warnf("%s does not run: %s", c.Provider.ManifestLabel(), reason)
			}
		}
	}
	return context.Cause(ctx)
}

func (i *Installer) waitProvider(ctx context.Context, p *clusterctlv1.Provider, timeout time.Duration, b board) error {
	deployments := &appsv1.DeploymentList{}
	labels := client.MatchingLabels{clusterv1.ProviderNameLabel: p.ManifestLabel()}
	err := i.Client.List(ctx, deployments, client.InNamespace(p.Namespace), labels)
	if err != nil {
		b.set(p.Name, "failed")
		return fmt.Errorf("cannot list the Deployments of %s: %w", p.ManifestLabel(), err)
	}
	for _, d := range deployments.Items {
		if !slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == packages.ManagerContainer }) {
			continue
		}
		err := apply.WaitAvailable(ctx, i.Client, client.ObjectKeyFromObject(&d), timeout, func(reason string) {
			b.set(p.Name, "waiting: "+reason)
		})
		if err != nil {
			b.set(p.Name, "not available")
			return fmt.Errorf("provider %s: %w", p.ManifestLabel(), err)
		}
	}
	err = apply.WaitWebhooks(ctx, i.Client, p.Namespace, timeout, func(reason string) { b.set(p.Name, "waiting: "+reason) }, labels)
	if err != nil {
		b.set(p.Name, "not available")
		return fmt.Errorf("provider %s: %w", p.ManifestLabel(), err)
	}
	b.set(p.Name, "available")
	return nil
}
