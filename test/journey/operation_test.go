package journey

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/etcdsnapshot"
	"sigs.k8s.io/cluster-api/backup/restorescript"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// operated is a Cluster whose control plane the test operates on, as the fleet provider does.
type operated struct{ *Subject }

// plane returns the KubeadmControlPlane.
func (c operated) plane() *controlplanev1.KubeadmControlPlane {
	c.t.Helper()
	kcp := &controlplanev1.KubeadmControlPlane{}
	testenv.Must(c.t, c.Client.Get(c.t.Context(), c.Key(), kcp))
	return kcp
}

// operate sets the operation on the control plane, and waits until its controller has observed that; without one, until it has forgotten it.
func (c operated) operate(op *fleetv1.Operation) {
	c.t.Helper()
	kcp, token := c.plane(), ""
	before := kcp.DeepCopy()
	delete(kcp.Annotations, fleetv1.OperationAnnotation)
	if op != nil {
		text, err := json.Marshal(op)
		testenv.Must(c.t, err)
		token = op.Token()
		metav1.SetMetaDataAnnotation(&kcp.ObjectMeta, fleetv1.OperationAnnotation, string(text))
	}
	testenv.Must(c.t, c.Client.Patch(c.t.Context(), kcp, client.MergeFrom(before)))
	testenv.Eventually(c.t, "the controller observes "+token, func() error {
		if answer := c.plane().Annotations[fleetv1.OperationObservedAnnotation]; answer != token {
			return fmt.Errorf("the answer is %q", answer)
		}
		return nil
	})
}

// deleteControlPlane deletes all Machines of the control plane, without draining their Nodes, and waits until they are gone.
func (c operated) deleteControlPlane() {
	c.t.Helper()
	for _, m := range c.Snapshot().ControlPlane() {
		before := m.DeepCopy()
		delete(m.Annotations, "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup")
		m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation] = ""
		testenv.Must(c.t, c.Client.Patch(c.t.Context(), &m, client.MergeFrom(before)))
		testenv.Must(c.t, c.Client.Delete(c.t.Context(), &m))
	}
	c.Eventually("the Machines of the control plane are gone", controlPlaneMachines(0))
}

// controlPlaneMachines is true when there are exactly n control plane Machines, in any state.
func controlPlaneMachines(n int) Condition {
	return func(p *Snapshot) error {
		if have := len(p.ControlPlane()); have != n {
			return fmt.Errorf("there are %d control plane Machines, want %d", have, n)
		}
		return nil
	}
}

// etcd calls a function with a client of the etcd member on a Node.
func (c operated) etcd(node string, do func(*clientv3.Client) error) {
	c.t.Helper()
	etcd, err := c.Workload().Etcd(c.t.Context(), node)
	testenv.Must(c.t, err)
	testenv.Must(c.t, errors.Join(do(etcd), etcd.Close()))
}

// snapshot returns the path of a snapshot of etcd.
func (c operated) snapshot() string {
	c.t.Helper()
	file, err := os.Create(filepath.Join(c.t.TempDir(), "etcd.db"))
	testenv.Must(c.t, err)
	c.etcd(c.Snapshot().ControlPlane()[0].Name, func(etcd *clientv3.Client) error {
		stream, err := etcd.Snapshot(c.t.Context())
		if err == nil {
			_, err = io.Copy(file, stream)
		}
		return err
	})
	testenv.Must(c.t, file.Close())
	return file.Name()
}

// restoreData serves the data directory that results from a snapshot, and returns what the script on a machine needs.
func restoreData(t *testing.T, snapshot string) map[string][]byte {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "etcd")
	testenv.Must(t, etcdsnapshot.Restore(t.Context(), snapshot, directory, etcdsnapshot.Options{
		Name: "restored", PeerURL: "https://restored.invalid:2380", BumpRevision: 1_000_000, MarkCompacted: true,
	}))
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	testenv.Must(t, archive.AddFS(os.DirFS(directory)))
	testenv.Must(t, errors.Join(archive.Close(), zipped.Close()))
	key, iv := bytes.Repeat([]byte{7}, restorescript.KeySize), bytes.Repeat([]byte{9}, aes.BlockSize)
	block, err := aes.NewCipher(key)
	testenv.Must(t, err)
	content := make([]byte, packed.Len())
	cipher.NewCTR(block, iv).XORKeyStream(content, packed.Bytes())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(content)
	config, err := restorescript.Config{
		URL: server.URL + "/etcd?signature=a&part=b", SHA256: hex.EncodeToString(sum[:]), Key: hex.EncodeToString(key), IV: hex.EncodeToString(iv),
	}.Encode()
	testenv.Must(t, err)
	return map[string][]byte{fleetv1.RestoreScriptKey: []byte(restorescript.Script), fleetv1.RestoreConfigKey: config}
}

// TestOperationOnControlPlane restores a control plane by hand, with what its controller and the bootstrap provider do for the fleet
// provider: the control plane is held, its Machines are deleted, and one with the data of a snapshot is created. After the operation, the
// control plane scales up, and replaces nothing.
func TestOperationOnControlPlane(t *testing.T) {
	testenv.Soak(t) // The restores of the fleet provider include it.
	t.Parallel()
	w := shared.World(t)
	c := operated{w.Plain(Plain{ControlPlanes: 3, Workers: 1}.String())}
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(3), Workers(1), c.WorkloadMatches)
	before := c.Snapshot()
	mark := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	testenv.Must(t, c.Workload().client.Create(t.Context(), mark("before")))
	snapshot := c.snapshot()
	testenv.Must(t, c.Workload().client.Create(t.Context(), mark("after")))

	op := fleetv1.Operation{Kind: "ControlPlaneRestore", Name: "monday", UID: types.UID("uid-of-monday"), Mode: fleetv1.OperationModeHold}
	c.operate(&op)
	c.deleteControlPlane()
	still := c.Always("no Machine is created", controlPlaneMachines(0))
	c.Eventually("the hold is explained", c.Explains("HeldByOperation KubeadmControlPlane/c", "ControlPlaneRestore monday holds the control plane"))
	still()
	op.Mode, op.DataSecret = fleetv1.OperationModeRestore, "restore-data"
	c.operate(&op)
	c.Eventually("one Machine is created", controlPlaneMachines(1))
	machine := c.Snapshot().ControlPlane()[0]
	for _, m := range before.ControlPlane() {
		if m.Name == machine.Name {
			t.Errorf("the Machine has the name of an earlier one: %s", m.Name)
		}
	}
	c.Eventually("the restore is explained", c.Explains("HeldByOperation KubeadmControlPlane/c", "ControlPlaneRestore monday"))
	testenv.Must(t, w.Client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "restore-data"}, Data: restoreData(t, snapshot),
	}))
	c.Eventually("the Machine has a Node", func(p *Snapshot) error { return running(p.ControlPlane(), 1) })
	for _, m := range before.ControlPlane() {
		testenv.Must(t, client.IgnoreNotFound(c.Workload().client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}})))
	}
	c.etcd(machine.Name, func(etcd *clientv3.Client) error {
		list, err := etcd.MemberList(t.Context())
		if err != nil || len(list.Members) != 1 {
			return fmt.Errorf("members %v: %w", list, err)
		}
		_, err = etcd.MemberUpdate(t.Context(), list.Members[0].ID, []string{"https://" + machine.Name + ":2380"})
		return err
	})
	still = c.Always("the control plane is held", controlPlaneMachines(1))
	testenv.Must(t, c.Workload().client.Get(t.Context(), client.ObjectKeyFromObject(mark("before")), &corev1.ConfigMap{}))
	if err := c.Workload().client.Get(t.Context(), client.ObjectKeyFromObject(mark("after")), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was created after the snapshot: %v", err)
	}
	still()

	c.operate(nil)
	c.Eventually("the control plane has three Machines again", Ready, ControlPlanes(3), Workers(1), c.WorkloadMatches,
		SameMachines((*Snapshot).Workers, before), func(p *Snapshot) error {
			for _, m := range p.ControlPlane() {
				if m.UID == machine.UID {
					return nil
				}
			}
			return errors.New("the restored Machine was replaced")
		})
	testenv.Must(t, w.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "restore-data"}}))
	if left := c.plane().Annotations; strings.Contains(fmt.Sprint(left), "fleet") {
		t.Errorf("annotations are left: %v", left)
	}
	c.Eventually("nothing is left to explain", c.ExplainsNothing)
	c.Gone()
}
