package rotation

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// enough reconciles for a whole rotation.
const enough = 200

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}

// completed checks that a rotation has completed, with one rollout of the control plane in each step.
func (w *world) completed(t *testing.T, reason string) {
	t.Helper()
	r := w.rotation(t)
	if r.Status.Phase != fleetv1.OperationPhaseCompleted {
		t.Fatalf("%s: it has not completed: %s, %+v", reason, w.said(t), r.Status.Steps)
	}
	for _, s := range r.Status.Steps {
		if ptr.Deref(s.Rollouts, 0) != 1 || *s.ControlPlane.Replaced != controlPlanes || *s.Workers.Replaced != workers {
			t.Errorf("%s: step %s: %+v", reason, s.Name, s)
		}
	}
	if want := 4 * (controlPlanes + workers); w.machines != want {
		t.Errorf("%s: %d Machines were created, want %d", reason, w.machines, want)
	}
	for _, purpose := range pki.OfControlPlane(false) {
		pair, err := pki.PairFrom(w.secretOf(t, purpose))
		testenv.Must(t, err)
		if strings.Count(string(pair.Certificate), "BEGIN") != 1 {
			t.Errorf("%s: Secret %s has %s", reason, purpose, pair.Certificate)
		}
	}
	for i, a := range r.Status.Authorities {
		if a.Old == a.New || a.Name == "" {
			t.Errorf("%s: authority %d: %+v", reason, i, a)
		}
	}
	kcp := &controlplanev1.KubeadmControlPlane{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: clusterKey.Namespace, Name: "cp"}, kcp))
	if op, err := fleetv1.OperationOf(kcp); op != nil || err != nil {
		t.Errorf("%s: the control plane is not given back: %v, %v", reason, op, err)
	}
}

func TestRotates(t *testing.T) {
	w := newWorld(t)
	before := w.certificate(t)
	w.run(t, enough)
	w.completed(t, "without interruption")
	if string(w.certificate(t)) == string(before) {
		t.Error("the CA is the old one")
	}
}

// TestKilled kills the process at its writes, before and after they take effect: at each in soak, at some in CI.
func TestKilled(t *testing.T) {
	reference := newWorld(t)
	reference.run(t, enough)
	writes := len(reference.Writes)
	if writes < 20 {
		t.Fatalf("only %d writes: %q", writes, reference.Writes)
	}
	for n := range writes {
		if n%5 != 0 && !testenv.Soaks() {
			continue
		}
		for _, lose := range []bool{false, true} {
			w := newWorld(t)
			seen, dead := 0, false
			w.Before = func(r fakeapi.Request) error {
				if r.IsWrite() {
					seen++
				}
				if dead = dead || seen == n+1 && r.IsWrite() && !lose; dead {
					return errKilled
				}
				return nil
			}
			w.After = func(r fakeapi.Request, err error) error {
				if seen == n+1 && r.IsWrite() {
					dead = true
					return errKilled
				}
				return err
			}
			for range enough {
				after := w.reconcile(t)
				if dead {
					w.Before, w.After, dead = nil, nil, false
					w.restart()
				}
				if w.rotation(t).Ended() {
					break
				}
				w.Clock.Step(max(after, 1e9))
				w.simulate(t)
			}
			w.completed(t, fmt.Sprintf("killed at write %d (%s), lost response: %t", n, reference.Writes[n], lose))
		}
	}
}

// TestStaleCache: a leader whose cache shows the status of before a step waits.
func TestStaleCache(t *testing.T) {
	w := newWorld(t)
	w.run(t, 12)
	w.Cache.Freeze(&fleetv1.CertificateAuthorityRotationList{})
	w.run(t, 1)
	w.restart()
	writes := len(w.Writes)
	w.run(t, 5)
	for _, one := range w.Writes[writes:] {
		if !strings.HasPrefix(one, "patch CertificateAuthorityRotation") {
			t.Errorf("with a stale cache: %s", one)
		}
	}
	w.Cache.Thaw()
	w.run(t, enough)
	w.completed(t, "after a stale cache")
}

func TestOutdatedData(t *testing.T) {
	w := newWorld(t)
	w.outdated = 1
	w.run(t, enough)
	if r := w.rotation(t); r.Status.Phase != fleetv1.OperationPhaseCompleted || *r.Status.Steps[0].Rollouts != 2 {
		t.Errorf("the control plane must be replaced again in the first step: %s, %+v", w.said(t), r.Status.Steps)
	}
}

func TestPauses(t *testing.T) {
	w := newWorld(t)
	w.run(t, 8)
	w.pause(t, true)
	w.run(t, 20)
	machines := w.machines
	w.run(t, 20)
	if said := w.said(t); w.machines != machines || !strings.HasPrefix(said, "Paused: The rotation is paused. Next, in step ") ||
		!strings.HasSuffix(said, "Set spec.paused to false to go on") {
		t.Errorf("paused, it has replaced %d Machines: %s", w.machines-machines, said)
	}
	w.pause(t, false)
	w.run(t, enough)
	w.completed(t, "after a pause")
}

// TestDeletedPaused: a rotation that must be completed before it is deleted, and is paused, says both.
func TestDeletedPaused(t *testing.T) {
	w := newWorld(t)
	for range enough {
		if w.rotation(t).Step(fleetv1.ReissueStep) != nil {
			break
		}
		w.run(t, 1)
	}
	w.run(t, 3)
	w.pause(t, true)
	testenv.Must(t, w.Delete(t.Context(), w.rotation(t)))
	w.run(t, 20)
	if said := w.said(t); !strings.HasPrefix(said, "Paused: It is deleted once the rotation has completed, because the new keys are in use. The "+
		"rotation is paused.") || !strings.HasSuffix(said, "Set spec.paused to false to go on") {
		t.Errorf("it says %s", said)
	}
	w.pause(t, false)
	for range enough {
		after := w.reconcile(t)
		if w.isGone(t) {
			return
		}
		w.Clock.Step(max(after, 1e9))
		w.simulate(t)
	}
	t.Errorf("it is not deleted: %s", w.said(t))
}

func (w *world) pause(t *testing.T, paused bool) {
	t.Helper()
	r := w.rotation(t)
	r.Spec.Paused = ptr.To(paused)
	r.Generation++
	testenv.Must(t, w.Update(t.Context(), r))
}

// TestDeleted deletes a rotation after each number of reconciles: it goes back or forward, and nothing is between two CAs.
func TestDeleted(t *testing.T) {
	for n := 1; n < 60; n++ {
		if n%6 != 0 && !testenv.Soaks() {
			continue
		}
		w := newWorld(t)
		old := string(w.certificate(t))
		w.run(t, n)
		testenv.Must(t, w.Delete(t.Context(), w.rotation(t)))
		gone := false
		for range enough {
			after := w.reconcile(t)
			if gone = w.isGone(t); gone {
				break
			}
			w.Clock.Step(max(after, 1e9))
			w.simulate(t)
		}
		now := string(w.certificate(t))
		if !gone || strings.Count(now, "BEGIN") != 1 {
			t.Errorf("deleted after %d reconciles: gone: %t, certificates:\n%s", n, gone, now)
		}
		if now != old {
			for _, m := range w.all(t) {
				if strings.TrimSpace(m.Annotations[certificatesAnnotation]) != now {
					t.Errorf("deleted after %d reconciles: Machine %s has other certificates", n, m.Name)
				}
			}
		}
	}
}

func (w *world) isGone(t *testing.T) bool {
	t.Helper()
	list := &fleetv1.CertificateAuthorityRotationList{}
	testenv.Must(t, w.List(t.Context(), list))
	return len(list.Items) == 0
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		reason string
		change func(obj client.Object)
		want   string
	}{
		{"not confirmed", func(o client.Object) {
			if r, ok := o.(*fleetv1.CertificateAuthorityRotation); ok {
				r.Spec.Confirm = ""
			}
		}, `NotConfirmed: To go on, set spec.confirm to "c". This is rotated: ClusterCA, EtcdCA, FrontProxyCA, ServiceAccountKey. 3 Machines of the control plane are replaced 3 times, and 2 other Machines 3 times: 15 new Machines. At`},
		{"another control plane", func(o client.Object) {
			if c, ok := o.(*clusterv1.Cluster); ok {
				c.Spec.ControlPlaneRef.Kind = "Other"
			}
		}, "Refused: the control plane of Cluster c is not a KubeadmControlPlane"},
		{"paused", func(o client.Object) {
			if k, ok := o.(*controlplanev1.KubeadmControlPlane); ok {
				k.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
			}
		}, "Refused: KubeadmControlPlane cp is paused"},
		{"in a rollout", func(o client.Object) {
			if k, ok := o.(*controlplanev1.KubeadmControlPlane); ok {
				k.Status.UpToDateReplicas = ptr.To[int32](2)
			}
		}, "Refused: KubeadmControlPlane cp is not complete"},
		{"external etcd", func(o client.Object) {
			if k, ok := o.(*controlplanev1.KubeadmControlPlane); ok {
				k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://etcd"}}
			}
		}, "Refused: etcd is external"},
		{"a user's CA", func(o client.Object) {
			if o.GetName() == "c-proxy" {
				*o.(*corev1.Secret) = *pki.NewSecret(clusterKey, pki.FrontProxyCA, map[string][]byte{pki.CertificateKey: []byte("x")}, nil)
			}
		}, "Refused: Secret c-proxy (FrontProxyCA): it has no private key"},
		{"another operation, which changes the certificates and the control plane", func(o client.Object) {
			if o.GetName() == "c-proxy" {
				*o.(*corev1.Secret) = *pki.NewSecret(clusterKey, pki.FrontProxyCA, map[string][]byte{pki.CertificateKey: []byte("x")}, nil)
			}
			if k, ok := o.(*controlplanev1.KubeadmControlPlane); ok {
				k.Status.UpToDateReplicas = ptr.To[int32](2)
				metav1.SetMetaDataAnnotation(&k.ObjectMeta, fleetv1.OperationAnnotation, `{"kind":"X","name":"x","uid":"u","mode":"Hold"}`)
			}
		}, "Refused: another operation is in progress: X x on KubeadmControlPlane cp: wait until it has completed, or delete it"},
		{"a paused MachineDeployment", func(o client.Object) {
			if d, ok := o.(*clusterv1.MachineDeployment); ok {
				d.Spec.Paused = ptr.To(true)
			}
		}, "Refused: MachineDeployment md is paused"},
	} {
		w := newWorld(t, tt.change)
		w.run(t, 3)
		if said := w.said(t); !strings.HasPrefix(said, tt.want) {
			t.Errorf("%s: %s", tt.reason, said)
		}
		if refused := strings.HasPrefix(tt.want, "Refused"); w.rotation(t).Ended() != refused {
			t.Errorf("%s: a confirmed rotation that is refused must not begin later", tt.reason)
		}
		for _, one := range w.Writes {
			if strings.Contains(one, "Secret") || strings.Contains(one, "Machine") {
				t.Errorf("%s: %s", tt.reason, one)
			}
		}
	}
}

func TestUnansweredIsNotBegun(t *testing.T) {
	w := newWorld(t)
	w.mute = true
	w.run(t, 5)
	if said := w.said(t); !strings.HasPrefix(said, "Waiting: Waiting for the controller of KubeadmControlPlane cp to answer") || w.machines != controlPlanes+workers {
		t.Errorf("%s, %d Machines", said, w.machines)
	}
	for _, one := range w.Writes {
		if strings.Contains(one, "Secret") {
			t.Error(one)
		}
	}
}
