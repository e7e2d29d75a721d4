package journey

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// TestControlPlaneMachineOfTheUser creates a Cluster without a control plane object. The bootstrap provider creates the CAs, and the
// core provider the kubeconfig, unless the user has.
func TestControlPlaneMachineOfTheUser(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprintf("with kubeconfig of the user %t", own), func(t *testing.T) {
			t.Parallel()
			w := shared.World(t)
			key := client.ObjectKey{Namespace: w.Namespace, Name: "c"}
			cluster, before := Plain{ControlPlane: ownMachine, Workers: 1}, map[string]ownSecret{}
			if own {
				port := w.freePort()
				createKeys(t, w, key, pki.ECDSA)
				w.userKubeconfig(key, managedServer(port))
				cluster.Infrastructure, before = fmt.Sprintf("controlPlaneEndpoint: {host: %s, port: %d}", managedHost, port), w.secrets(key)
			}
			c := w.Plain(cluster.String())
			c.Eventually("the Machines run", Workers(1), c.WorkloadMatches, func(p *Snapshot) error { return running(p.ControlPlane(), 1) })
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: pki.SecretName("c", pki.Kubeconfig)}}
			w.read(secret)
			if owned := len(secret.OwnerReferences) > 0; owned == own {
				t.Errorf("the kubeconfig has owners %v", secret.OwnerReferences)
			}
			c.Gone()
			if own {
				if diff := cmp.Diff(before, w.secrets(key)); diff != "" {
					t.Errorf("Secrets of the user were changed (-before +after):\n%s", diff)
				}
			}
		})
	}
}
