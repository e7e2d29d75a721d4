package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/test/managers"
)

// world is an API server and the managers, each a process.
type world struct {
	*managers.Server
	managers           []*managers.Manager
	clusters, machines objects
	// bindings are the ClusterResourceSetBindings.
	bindings objects
	// workloads is the address of the metrics of workload clusters.
	workloads string
}

// startWorld starts an API server, in a temporary folder by default, and these programs, and creates the ClusterClass, with these options.
func startWorld(ctx context.Context, o managers.Options, programs []managers.Program, class ...client.CreateOption) (*world, error) {
	if o.Dir == "" {
		var err error
		if o.Dir, err = os.MkdirTemp("", "bench-"); err != nil {
			return nil, err
		}
	}
	server, err := managers.StartServer(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &world{Server: server}
	if err := w.start(ctx, programs, class...); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (logs are in %s)", err, o.Dir), w.stop())
	}
	return w, nil
}

func (w *world) start(ctx context.Context, programs []managers.Program, class ...client.CreateOption) error {
	for _, p := range programs {
		m, err := managers.NewManager(w.Root, w.Dir, p.Name, p, w.Kubeconfig)
		if err != nil {
			return err
		}
		if err := w.withBackups(m); err != nil {
			return err
		}
		if err := w.launch(ctx, m); err != nil {
			return err
		}
	}
	if err := w.class(ctx, class...); err != nil {
		return err
	}
	return w.watch(ctx)
}

// launch installs the CRDs and webhooks of a manager, and starts it.
func (w *world) launch(ctx context.Context, m *managers.Manager) error {
	if err := w.Install(ctx, m, m.WebhookPort); err != nil {
		return err
	}
	if err := m.Start(); err != nil {
		return err
	}
	w.managers = append(w.managers, m)
	return nil
}

// class creates the ClusterClass of the in-memory quick start, with machines that start immediately, when all webhooks respond.
func (w *world) class(ctx context.Context, options ...client.CreateOption) error {
	objects, err := managers.ReadObjects(filepath.Join(w.Root, "test", "bench", "class.yaml"))
	if err != nil {
		return err
	}
	for _, o := range objects {
		o.SetNamespace("default")
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := w.create(ctx, o.DeepCopy(), options...)
			return err == nil || apierrors.IsAlreadyExists(err), nil
		})
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// create creates an object of v1beta1 in the version that is stored. The API server would otherwise call a webhook for each change of the
// object, to compare the fields of those who have written it.
func (w *world) create(ctx context.Context, o *unstructured.Unstructured, options ...client.CreateOption) error {
	stored, err := conversion.Shared().In(ctx, w.Stored, o)
	if err != nil {
		return err
	}
	return w.Client.Create(ctx, stored, options...)
}

// stop stops all processes.
func (w *world) stop() error {
	var errs []error
	for _, m := range w.managers {
		errs = append(errs, m.Stop())
	}
	return errors.Join(append(errs, w.Stop())...)
}
