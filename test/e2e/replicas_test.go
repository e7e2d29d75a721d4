package e2e

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failover kills the leaders of all managers, as a crash does, and logs how long it takes until there are others.
func (m *management) failover() {
	m.t.Helper()
	var killed sync.WaitGroup
	for _, d := range m.managers {
		before, pod := m.leader(d)
		holder := *before.Spec.HolderIdentity
		m.kill(d, pod)
		began := time.Now()
		killed.Go(func() {
			// The duration of the Lease, and two attempts to take it.
			limit := time.Duration(ptr.Deref(before.Spec.LeaseDurationSeconds, 0))*time.Second + 30*time.Second
			for time.Since(began) < limit {
				var now coordinationv1.Lease
				err := m.client.Get(m.t.Context(), client.ObjectKeyFromObject(before), &now)
				if identity := ptr.Deref(now.Spec.HolderIdentity, ""); err == nil && identity != holder && identity != "" {
					successor, _, _ := strings.Cut(identity, "_")
					m.t.Logf("%s: another process leads %.0f s after the leader was killed (in the other Pod: %t)", d.image, time.Since(began).Seconds(), successor != pod)
					return
				}
				<-time.After(interval)
			}
			m.t.Errorf("%s: %s is still the leader %s after it was killed", d.image, holder, limit)
		})
	}
	killed.Wait()
}

// leader returns the Lease of a manager and the name of the Pod that holds it, when it is one of the current Pods.
func (m *management) leader(d deployed) (*coordinationv1.Lease, string) {
	m.t.Helper()
	lease, pod := &coordinationv1.Lease{}, ""
	m.until("a Pod of "+d.image+" is the leader", func() bool {
		if err := m.client.Get(m.t.Context(), client.ObjectKey{Namespace: d.namespace, Name: d.lease}, lease); err != nil {
			return false
		}
		pod, _, _ = strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
		return slices.ContainsFunc(m.pods(d), func(p corev1.Pod) bool { return p.Name == pod })
	})
	return lease, pod
}

// kill kills the process of a Pod.
func (m *management) kill(d deployed, name string) {
	m.t.Helper()
	var pod corev1.Pod
	if err := m.client.Get(m.t.Context(), client.ObjectKey{Namespace: d.namespace, Name: name}, &pod); err != nil {
		m.t.Fatal(err)
	}
	const script = `for p in $(pgrep -x manager); do tr _ - < /proc/$p/cgroup | grep -q "$1" && kill -KILL $p && exit 0; done; exit 1`
	must(m.t, "exec", pod.Spec.NodeName, "sh", "-c", script, "sh", string(pod.UID))
}

// rotate deletes the certificates of all webhook servers, which forces a rotation, and waits until API servers trust the new CAs.
// Servers use them five minutes later.
func (m *management) rotate() {
	m.t.Helper()
	for _, d := range m.managers {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: d.prefix + "webhook-service-cert"}}
		if err := m.client.Get(m.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			m.t.Fatal(err)
		}
		before := bytes.TrimSpace(secret.Data["ca.crt"])
		if err := m.client.Delete(m.t.Context(), secret); err != nil {
			m.t.Fatal(err)
		}
		m.until("API servers trust another CA for the webhooks of "+d.image, func() bool {
			var issued corev1.Secret
			var configuration admissionregistrationv1.ValidatingWebhookConfiguration
			if m.client.Get(m.t.Context(), client.ObjectKeyFromObject(secret), &issued) != nil ||
				m.client.Get(m.t.Context(), client.ObjectKey{Name: d.prefix + "validating-webhook-configuration"}, &configuration) != nil {
				return false
			}
			now := bytes.TrimSpace(issued.Data["ca.crt"])
			return len(now) > 0 && !bytes.Equal(now, before) && !slices.ContainsFunc(configuration.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
				return !bytes.Contains(w.ClientConfig.CABundle, now)
			})
		})
	}
}

// until waits for a condition.
func (m *management) until(what string, met func() bool) {
	m.t.Helper()
	for began := time.Now(); time.Since(began) < 2*time.Minute; <-time.After(interval) {
		if met() {
			return
		}
	}
	m.t.Fatalf("not within 2 minutes: %s", what)
}

// cluster creates a cluster of one control plane machine with the Deployments, and deletes it.
func (m *management) cluster() {
	m.t.Helper()
	const name = "inside"
	removeIfFailed(m.t, name)
	m.clusterctl("create", "cluster", name, "--infrastructure", "docker", "--flavor", "development", "--kubernetes-version", newer,
		"--control-plane-machine-count", "1", "--worker-machine-count", "0")
	m.kubectl("wait", "--for", "condition=Available", "cluster/"+name, "--timeout", "300s")
	if len(containers(m.t, name)) != 2 {
		m.t.Errorf("Cluster %s has the containers %v, want a machine and a load balancer", name, containers(m.t, name))
	}
	m.clusterctl("delete", "cluster", name, "--wait")
	if left := containers(m.t, name); len(left) > 0 {
		m.t.Errorf("containers of the deleted Cluster %s still exist: %v", name, left)
	}
}

// memory logs how much memory the managers use, and checks that none was killed at its limit.
func (m *management) memory() {
	m.t.Helper()
	var nodes corev1.NodeList
	if err := m.client.List(m.t.Context(), &nodes); err != nil {
		m.t.Fatal(err)
	}
	type container struct {
		Memory struct{ UsageBytes, WorkingSetBytes, RSSBytes int64 }
	}
	used := map[string]container{}
	for _, n := range nodes.Items {
		raw, err := m.kubernetes.CoreV1().RESTClient().Get().Resource("nodes").Name(n.Name).SubResource("proxy").Suffix("stats/summary").DoRaw(m.t.Context())
		if err != nil {
			m.t.Fatal(err)
		}
		var summary struct {
			Pods []struct {
				PodRef     struct{ Name string }
				Containers []container
			}
		}
		if err := json.Unmarshal(raw, &summary); err != nil {
			m.t.Fatal(err)
		}
		for _, p := range summary.Pods {
			if len(p.Containers) > 0 {
				used[p.PodRef.Name] = p.Containers[0]
			}
		}
	}
	for _, d := range m.managers {
		for _, p := range m.pods(d) {
			memory := used[p.Name].Memory
			m.t.Logf("%s: %d MiB used, %d MiB of it in the working set, limit %s", p.Name, memory.UsageBytes>>20, memory.WorkingSetBytes>>20,
				p.Spec.Containers[0].Resources.Limits.Memory())
			for _, s := range p.Status.ContainerStatuses {
				if last := s.LastTerminationState.Terminated; last != nil && last.Reason == "OOMKilled" {
					m.t.Errorf("Pod %s was killed because it used more memory than its limit", p.Name)
				}
				if s.RestartCount > 1 {
					m.t.Errorf("Pod %s was restarted %d times, want at most once, when it was killed", p.Name, s.RestartCount)
				}
			}
		}
	}
}
