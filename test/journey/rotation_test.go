package journey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// kubeconfig returns the kubeconfig in the management cluster.
func (v *vault) kubeconfig(cluster string) []byte {
	v.t.Helper()
	secret := &corev1.Secret{}
	testenv.Must(v.t, v.api.Get(v.t.Context(), client.ObjectKey{Namespace: v.Namespace, Name: pki.SecretName(cluster, pki.Kubeconfig)}, secret))
	return secret.Data[pki.KubeconfigKey]
}

// writeWith writes into the workload cluster, over a new connection.
func writeWith(ctx context.Context, kubeconfig []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	config.Timeout = answerTime
	config.Dial = (&net.Dialer{}).DialContext // client-go keeps connections by configuration.
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer connection.CloseIdleConnections()
	api, err := kubernetes.NewForConfigAndClient(config, connection)
	if err != nil {
		return err
	}
	_, err = api.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}, metav1.CreateOptions{})
	return err
}

// writers writes with each change of a Machine or of the rotation: with the kubeconfig that was read when a step was complete, and with the
// current one.
type writers struct {
	v       *vault
	cluster string
	// perStep is what a user has read after the latest step, whose number is read.
	perStep []byte
	read    int
	writes  int
}

func (w *writers) write(r *fleetv1.CertificateAuthorityRotation) {
	w.v.t.Helper()
	complete := 0
	for _, step := range r.Status.Steps {
		if step.CompletionTime != nil {
			complete++
		}
	}
	if w.perStep == nil || complete > w.read {
		w.perStep, w.read = w.v.kubeconfig(w.cluster), complete
	}
	for what, kubeconfig := range map[string][]byte{"read after the latest step": w.perStep, "of now": w.v.kubeconfig(w.cluster)} {
		// Several, because API servers answer in turn.
		for range 4 {
			w.writes++
			err := writeWith(w.v.t.Context(), kubeconfig)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
				// The API server was just stopped. Simulated ones do not wait until requests have ended.
				err = writeWith(w.v.t.Context(), kubeconfig)
			}
			if err != nil {
				w.v.t.Errorf("with the kubeconfig %s, after %d steps: %v", what, complete, err)
			}
		}
	}
}

// until writes until the rotation has completed.
func (w *writers) until(r *fleetv1.CertificateAuthorityRotation) {
	w.v.t.Helper()
	before := ""
	testenv.Eventually(w.v.t, "the rotation completes", func() error {
		testenv.Must(w.v.t, w.v.api.Get(w.v.t.Context(), client.ObjectKeyFromObject(r), r))
		machines := &clusterv1.MachineList{}
		testenv.Must(w.v.t, w.v.Client.List(w.v.t.Context(), machines, client.InNamespace(w.v.Namespace)))
		now := r.ResourceVersion
		for i := range machines.Items {
			now += machines.Items[i].Name + machines.Items[i].ResourceVersion
		}
		if now != before {
			before = now
			w.write(r)
		}
		if r.Status.Phase != fleetv1.OperationPhaseCompleted {
			return fmt.Errorf("it is %+v", r.Status)
		}
		return nil
	})
}

// TestRotation rotates all certificate authorities of a Cluster. Users write all the time, and a kubeconfig of before is refused at the end.
// The book and the walk of permissions rotate with each change, too.
func TestRotation(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	rotates(t, 1, 1)
}

// TestRotationOfMany is TestRotation with 3 control plane Machines, whose API servers have certificates of different CAs meanwhile, and 2
// workers.
func TestRotationOfMany(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	rotates(t, 3, 2)
}

func rotates(t *testing.T, controlPlanes, workers int) {
	t.Helper()
	v := newVault(t)
	c := v.Subject(NewCluster("rotated", v.Class(v.Tools.ProjectTemplate())).ControlPlanes(int32(controlPlanes)).Workers(int32(workers)).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(controlPlanes), Workers(workers))
	before := c.Snapshot()
	old := v.kubeconfig(c.Name)
	r := &fleetv1.CertificateAuthorityRotation{ObjectMeta: v.meta("all"), Spec: fleetv1.CertificateAuthorityRotationSpec{ClusterName: c.Name}}
	v.create(r)
	v.settled(r, fleetv1.OperationCompletedCondition, "False NotConfirmed", fmt.Sprintf("%d new Machines", 4*controlPlanes+3*workers)) // This version needs two rollouts in step Reissue.
	confirmed := r.DeepCopy()
	confirmed.Spec.Confirm = c.Name
	testenv.Must(t, v.api.Patch(t.Context(), confirmed, client.MergeFrom(r)))
	w := &writers{v: v, cluster: c.Name}
	w.until(r)
	t.Logf("%d writes", w.writes)

	v.settled(r, fleetv1.OperationCompletedCondition, "True Completed", "")
	for _, a := range r.Status.Authorities {
		if a.Old == "" || a.New == "" || a.Old == a.New {
			t.Errorf("fingerprints of %s: %q and %q", a.Name, a.Old, a.New)
		}
	}
	c.Reconnect()
	c.Eventually("the Cluster is ready", Ready, ControlPlanes(controlPlanes), Workers(workers),
		NewMachines((*Snapshot).ControlPlane, before), NewMachines((*Snapshot).Workers, before), c.WorkloadMatches)
	testenv.Must(t, writeWith(t.Context(), v.kubeconfig(c.Name)))
	if err := writeWith(t.Context(), old); err == nil {
		t.Error("the kubeconfig of before the rotation is not refused")
	}
}
