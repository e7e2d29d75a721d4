// Package testextension is a runtime extension that implements all hooks, and answers as a ConfigMap next to each Cluster says: it blocks,
// fails, delays, patches, plans upgrades, and changes flags of the kubelets of running machines. Users try with it how Clusters behave,
// and tests what extensions see.
package testextension

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/answer"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/hook"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/kubelet"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

// NewComponent returns the test extension as a component of a manager.
func NewComponent() manager.Component {
	return manager.Component{
		Name:             "test-extension",
		Purpose:          "A runtime extension for trying out hooks: answers as the ConfigMap <cluster>-test-extension says.",
		Namespace:        "test-extension-system",
		LeaderElectionID: "controller-leader-election-test-extension",
		WebhookService:   "test-extension-webhook-service",
		Setup: func(_ context.Context, mgr ctrl.Manager, _ manager.Environment) error {
			catalog, err := hook.NewCatalog()
			if err != nil {
				return err
			}
			s, err := server.New(server.Options{Catalog: catalog, Webhooks: mgr.GetWebhookServer()})
			if err != nil {
				return err
			}
			store := &answer.Store{Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Clock: clock.RealClock{}}
			workload := &kubelet.Connector{Reader: mgr.GetAPIReader()}
			kubelets := &kubelet.Updater{Connect: workload.Connect}
			return (&hook.Handlers{Source: store, Clock: clock.RealClock{}, Kubelets: kubelets}).AddTo(s)
		},
	}
}
