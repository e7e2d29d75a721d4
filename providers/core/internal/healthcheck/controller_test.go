package healthcheck

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

const waiting = ", owner False WaitingForRemediation"

func TestHealthyClusterCostsOneWritePerMachine(t *testing.T) {
	w := newWorld(t, check("40%"), running("a", "b")...)
	w.settled()
	equal(t, "writes", []string{"patch MachineHealthCheck/status h", "patch Machine/status a", "patch Machine/status b"}, w.Writes)
	equal(t, "marks", []string{"a: True", "b: True"}, w.marks())
	equal(t, "status", "2/2, 0 allowed, True", w.status())
	equal(t, "targets", []string{"a", "b"}, w.health().Status.Targets)
	equal(t, "live reads", nil, w.LiveReads)
	w.Writes = nil
	w.settled()
	equal(t, "writes of an idle check", nil, w.Writes)
	equal(t, "live reads of an idle check", nil, w.LiveReads)
}

func TestFailedNodeIsRemediatedExactlyOnTime(t *testing.T) {
	w := newWorld(t, check("40%"), running("a", "b", "c")...)
	w.begin()
	w.becomes(corev1.ConditionUnknown, time.Minute, "a")
	after, err := w.reconcile(w.check)
	testenv.Must(t, err)
	equal(t, "the counters are held back", countersDelay, after)
	w.Clock.Step(after)
	after, err = w.reconcile(w.check)
	testenv.Must(t, err)
	equal(t, "next reconcile", badFor-time.Minute-countersDelay+timerSlack, after)
	equal(t, "events", []string{"Normal DetectedUnhealthy Condition Ready on Node a is reporting status Unknown; remediation begins at 2026-01-02T03:08:08Z if that does not change"},
		w.Events())
	equal(t, "live reads before", nil, w.LiveReads)
	w.Clock.Step(after)
	w.settled()
	equal(t, "marks", []string{"a: False UnhealthyNode" + waiting, "b: True", "c: True"}, w.marks())
	equal(t, "events", []string{"Normal MachineMarkedUnhealthy Machine is unhealthy and will be replaced: Condition Ready on Node a is reporting status Unknown for more than 5m0s"},
		w.Events())
	equal(t, "live reads", []string{"get MachineHealthCheck h", "get Cluster c", "list Machine", "list Node"}, w.LiveReads)
	equal(t, "writes", []string{"patch MachineHealthCheck/status h", "patch Machine/status a"}, w.Writes)
	equal(t, "status", "2/3, 0 allowed, True", w.status())
}

// TestFailedConditionOfAMachine checks that a condition of a Machine is a reason to remediate it.
func TestFailedConditionOfAMachine(t *testing.T) {
	detached := check("40%", func(h *clusterv1.MachineHealthCheck) {
		h.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{
			{Type: "NetworkReady", Status: metav1.ConditionFalse, TimeoutSeconds: ptr.To[int32](60)},
		}
	})
	w := newWorld(t, detached, running("a", "b", "c")...)
	w.begin()
	w.change("a", func(m *clusterv1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: "NetworkReady", Status: metav1.ConditionFalse, Reason: "Detached", LastTransitionTime: metav1.NewTime(w.Clock.Now()),
		})
	})
	w.settled()
	equal(t, "marks", []string{"a: True", "b: True", "c: True"}, w.marks())
	w.Clock.Step(61 * time.Second)
	w.settled()
	equal(t, "marks", []string{"a: False UnhealthyMachine" + waiting, "b: True", "c: True"}, w.marks())
	got := apimeta.FindStatusCondition(w.machine("a").Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	equal(t, "message", "Health check failed:\n  * Condition NetworkReady on Machine is reporting status False with reason Detached for more than 1m0s",
		got.Message)
}

// TestStartingClusterCostsOneStatusWrite checks that the counters of a new check are held back while Machines start, and that no event
// reports too few healthy ones.
func TestStartingClusterCostsOneStatusWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*world)
		want   string
	}{
		"Starting": {reason: "The status is written when the time is over.", change: func(w *world) { w.Clock.Step(startDelay) }, want: "1/2, 0 allowed, False TooManyUnhealthy"},
		"Joined": {reason: "It is written when all have joined.", change: func(w *world) {
			testenv.Must(w, w.workload.Client.Create(w.Context(), node("b", corev1.ConditionTrue, 0)))
			w.change("b", func(m *clusterv1.Machine) { m.Status.NodeRef = running("b")[0].Status.NodeRef })
		}, want: "2/2, 0 allowed, True"},
		"Failed": {reason: "It is written when one fails.", change: func(w *world) { w.becomes(corev1.ConditionUnknown, time.Minute, "a") }, want: "0/2, 0 allowed, False TooManyUnhealthy"},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := check("40%", func(h *clusterv1.MachineHealthCheck) { h.CreationTimestamp = metav1.NewTime(now) })
			starting := running("b")[0]
			starting.CreationTimestamp, starting.Status.NodeRef = metav1.NewTime(now), clusterv1.MachineNodeReference{}
			w := newWorld(t, fresh, running("a")[0], starting)
			w.settled()
			equal(t, "writes", []string{"patch Machine/status a"}, w.Writes)
			equal(t, "status", "0/0, 0 allowed", w.status())
			equal(t, "observed generation", int64(0), w.health().Status.ObservedGeneration)
			equal(t, "events", nil, w.Events())
			tc.change(w)
			w.settled()
			equal(t, tc.reason, tc.want, w.status())
		})
	}
}

// TestFleetHoldsRemediationBack checks that nothing is remediated while too many Clusters have unhealthy Machines, that this costs no
// requests, and that it ends by itself.
func TestFleetHoldsRemediationBack(t *testing.T) {
	w := newWorld(t, check("100%"), running("a", "b")...)
	w.begin()
	limits, err := diagnosis.NewFleetLimits("1", "100%")
	testenv.Must(t, err)
	w.check.control.fleet.limits = limits
	other := build.Machine("o", object.WithNode("o"), func(m *clusterv1.Machine) {
		m.Spec.ClusterName = "other"
		condition.Set(m, condition.False(clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.ConditionSeverityWarning, "UnhealthyNode", ""))
	})
	testenv.Must(t, w.Create(t.Context(), other))
	w.becomes(corev1.ConditionUnknown, time.Hour, "a")
	w.change("a", func(m *clusterv1.Machine) {
		condition.Set(m, condition.Unknown(clusterv1.MachineNodeHealthyV1Beta1Condition, "NodeConditionsFailed", ""))
	})
	w.settled()
	equal(t, "marks", []string{"a: False UnhealthyNode", "b: True", "o: False UnhealthyNode"}, w.marks())
	equal(t, "status", "1/2, 0 allowed, False FleetUnhealthy", w.status())
	equal(t, "events", []string{"Warning RemediationRestricted No Machine is remediated: more Clusters are unhealthy at the same time than " +
		"--remediation-max-unhealthy-clusters=1 allows. Find what they have in common, such as a network: remediation resumes when fewer are. " +
		"Machines with annotation cluster.x-k8s.io/remediate-machine are remediated regardless: 2 of 2 Clusters have unhealthy Machines"},
		w.Events())

	w.Writes, w.LiveReads = nil, nil
	w.Clock.Step(brakeBackstop)
	after, err := w.reconcile(w.check)
	testenv.Must(t, err)
	equal(t, "next reconcile", brakeBackstop, after)
	equal(t, "writes while it lasts", nil, w.Writes)
	equal(t, "live reads while it lasts", nil, w.LiveReads)

	testenv.Must(t, w.Delete(t.Context(), w.machine("o")))
	w.Clock.Step(after)
	w.settled()
	equal(t, "marks", []string{"a: False UnhealthyNode" + waiting, "b: True"}, w.marks())
	equal(t, "status", "1/2, 1 allowed, True", w.status())
}

// TestFleetCountsWhatIsDue checks that Machines which fail at the same time count at once, even if nothing but their check has noticed yet.
func TestFleetCountsWhatIsDue(t *testing.T) {
	w := newWorld(t, check("100%"), running("a", "b", "c")...)
	w.begin()
	limits, err := diagnosis.NewFleetLimits("100%", "2")
	testenv.Must(t, err)
	w.check.control.fleet.limits = limits
	for _, name := range []string{"a", "b", "c"} {
		w.change(name, func(m *clusterv1.Machine) {
			condition.Set(m, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
		})
	}
	w.becomes(corev1.ConditionUnknown, time.Hour, "a", "b")
	w.settled()
	equal(t, "marks of two", []string{"a: False UnhealthyNode" + waiting, "b: False UnhealthyNode" + waiting, "c: True"}, w.marks())
	w.becomes(corev1.ConditionUnknown, time.Hour, "c")
	w.settled()
	equal(t, "marks of three", []string{"a: False UnhealthyNode" + waiting, "b: False UnhealthyNode" + waiting, "c: False UnhealthyNode"}, w.marks())
	equal(t, "status", "0/3, 0 allowed, False FleetUnhealthy", w.status())
}

// TestTooManyUnhealthy checks that a dead zone is recorded, not remediated, and announced once.
func TestTooManyUnhealthy(t *testing.T) {
	w := newWorld(t, check("40%"), running("a", "b", "c")...)
	w.begin()
	w.becomes(corev1.ConditionUnknown, time.Hour, "a", "b")
	w.settled()
	equal(t, "marks", []string{"a: False UnhealthyNode", "b: False UnhealthyNode", "c: True"}, w.marks())
	equal(t, "status", "1/3, 0 allowed, False TooManyUnhealthy", w.status())
	equal(t, "events", []string{"Warning RemediationRestricted No Machine is remediated: 2 of 3 Machines are not healthy, which is outside of maxUnhealthy 40% (0 to 1 Machines)"},
		w.Events())
	w.Writes, w.LiveReads = nil, nil
	w.settled()
	equal(t, "later writes, live reads and events", nil, append(append(w.Writes, w.LiveReads...), w.Events()...))

	w.becomes(corev1.ConditionTrue, 0, "b")
	w.Clock.Step(time.Minute)
	w.settled()
	equal(t, "marks once b is back", []string{"a: False UnhealthyNode" + waiting, "b: True", "c: True"}, w.marks())
	equal(t, "status", "2/3, 0 allowed, True", w.status())
}

// TestRecoveryRemovesMark checks that a Machine whose Node recovers before its owner acts is not replaced.
func TestRecoveryRemovesMark(t *testing.T) {
	w := newWorld(t, check("100%"), running("a", "b")...)
	w.becomes(corev1.ConditionUnknown, time.Hour, "a")
	w.settled()
	equal(t, "marks", []string{"a: False UnhealthyNode" + waiting, "b: True"}, w.marks())
	w.becomes(corev1.ConditionTrue, 0, "a")
	after, err := w.reconcile(w.check)
	testenv.Must(t, err)
	if after == 0 || after > 11*time.Second {
		t.Errorf("reconciled again after %s", after)
	}
	w.Clock.Step(11 * time.Second)
	w.settled()
	equal(t, "marks", []string{"a: True", "b: True"}, w.marks())
	equal(t, "status", "2/2, 2 allowed, True", w.status())
}

// TestCachesAreStale checks that what counts is what the API servers have, not the caches.
func TestCachesAreStale(t *testing.T) {
	cases := map[string]struct {
		reason string
		// then changes the API servers after the caches are frozen with Node a failed for an hour.
		then  func(w *world)
		marks []string
	}{
		"Recovered": {
			reason: "a Node that has recovered is not remediated",
			then:   func(w *world) { w.becomes(corev1.ConditionTrue, time.Minute, "a") },
			marks:  []string{"a: True", "b: True", "c: True"},
		},
		"MoreNodesFailed": {
			reason: "Nodes that have failed meanwhile count",
			then:   func(w *world) { w.becomes(corev1.ConditionUnknown, time.Minute, "b") },
			marks:  []string{"a: False UnhealthyNode", "b: True", "c: True"},
		},
		"Deleting": {
			reason: "a Machine that is being deleted counts",
			then:   func(w *world) { testenv.Must(w, w.Delete(w.Context(), w.machine("b"))) },
			marks:  []string{"a: False UnhealthyNode", "b: True", "c: True"},
		},
		"Marked": {
			reason: "a Machine that another leader has marked counts",
			then: func(w *world) {
				w.change("b", func(m *clusterv1.Machine) {
					condition.Set(m, condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, "RemediationInProgress", ""))
				})
			},
			marks: []string{"a: False UnhealthyNode", "b: True, owner False RemediationInProgress", "c: True"},
		},
		"Skipped": {
			reason: "an annotation that was added meanwhile counts",
			then: func(w *world) {
				w.change("a", func(m *clusterv1.Machine) {
					m.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: ""}
				})
			},
			marks: []string{"a: True", "b: True", "c: True"},
		},
		"Limited": {
			reason: "a limit that was lowered meanwhile counts",
			then: func(w *world) {
				h := w.health()
				h.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo.IntVal, h.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo.StrVal, h.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo.Type = 0, "", 0
				testenv.Must(w, w.Update(w.Context(), h))
			},
			marks: []string{"a: False UnhealthyNode", "b: True", "c: True"},
		},
		"Paused": {
			reason: "a Cluster that was paused meanwhile is left alone",
			then: func(w *world) {
				cluster := build.Cluster()
				testenv.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(cluster), cluster))
				cluster.Spec.Paused = ptr.To(true)
				testenv.Must(w, w.Update(w.Context(), cluster))
			},
			marks: []string{"a: True", "b: True", "c: True"},
		},
		"Annotated": {
			reason: "the annotation of the Cluster pauses only the Cluster itself",
			then: func(w *world) {
				cluster := build.Cluster()
				testenv.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(cluster), cluster))
				object.PausedByAnnotation(cluster)
				testenv.Must(w, w.Update(w.Context(), cluster))
				w.Cache.Freeze(&clusterv1.ClusterList{})
			},
			marks: []string{"a: False UnhealthyNode" + waiting, "b: True", "c: True"},
		},
		"Current": {
			reason: "nothing has changed", then: func(*world) {},
			marks: []string{"a: False UnhealthyNode" + waiting, "b: True", "c: True"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, check("40%"), running("a", "b", "c")...)
			for _, m := range []string{"b"} { // A Machine with a finalizer stays while it is being deleted.
				w.change(m, func(m *clusterv1.Machine) { m.Finalizers = []string{clusterv1.MachineFinalizer} })
			}
			w.begin()
			w.becomes(corev1.ConditionUnknown, time.Hour, "a")
			w.workload.Cache.Freeze(&corev1.NodeList{})
			w.Cache.Freeze(&clusterv1.MachineList{}, &clusterv1.ClusterList{}, &clusterv1.MachineHealthCheckList{})
			tc.then(w)
			if _, err := w.reconcile(w.check); err != nil {
				t.Fatal(err)
			}
			equal(t, tc.reason, tc.marks, w.marks())
		})
	}
}

// TestTwoLeadersRemediateOne checks that two managers, each of whose caches has other failed Nodes, remediate at most one.
func TestTwoLeadersRemediateOne(t *testing.T) {
	w := newWorld(t, check("1"), running("a", "b", "c")...)
	w.begin()
	other := w.workload.Cache
	w.becomes(corev1.ConditionUnknown, time.Hour, "a")
	w.workload.Cache.Freeze(&corev1.NodeList{})
	if _, err := w.reconcile(w.check); err != nil {
		t.Fatal(err)
	}
	// The second has the Machines as they were before, and the Nodes as they are now.
	second := w.NewCache()
	for _, name := range []string{"a", "b", "c"} {
		m := w.machine(name)
		condition.Delete(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
		condition.Set(m, condition.True(clusterv1.MachineHealthCheckSucceededV1Beta1Condition))
		second.Show(m)
	}
	w.Cache = second
	other.Thaw()
	w.becomes(corev1.ConditionTrue, 0, "a")
	w.becomes(corev1.ConditionUnknown, time.Hour, "b")
	if _, err := w.reconcile(w.newProcess()); err != nil {
		t.Fatal(err)
	}
	equal(t, "marks", []string{"a: False UnhealthyNode" + waiting, "b: False UnhealthyNode", "c: True"}, w.marks())
}

func TestUnreachableClusterIsLeftAlone(t *testing.T) {
	w := newWorld(t, check("100%"), running("a", "b", "c")...)
	w.begin()
	w.becomes(corev1.ConditionUnknown, time.Hour, "a")
	w.change("b", fails)
	w.workload.Err = &remote.NotConnectedError{Cluster: types.NamespacedName{Namespace: "default", Name: "c"}, Since: now, Cause: errors.New("connection refused")}
	w.settled()
	equal(t, "marks", []string{"a: True", "b: True", "c: True"}, w.marks())
	equal(t, "the counters are kept", "3/3, 3 allowed, False WorkloadClusterUnreachable", w.status())
	got := condition.Get(w.health(), clusterv1.RemediationAllowedV1Beta1Condition)
	for _, words := range []string{"since 2026-01-02T03:04:05Z", "connection refused"} {
		if !strings.Contains(got.Message, words) || got.Severity != clusterv1.ConditionSeverityWarning {
			t.Errorf("condition %+v, want %q", got, words)
		}
	}
	w.Writes = nil
	w.workload.Err = &remote.NotConnectedError{Since: now.Add(time.Minute), Cause: errors.New("another reason")}
	w.settled()
	equal(t, "the reason is not rewritten", nil, w.Writes)

	w.change("c", func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
	})
	w.settled()
	equal(t, "a user's request is fulfilled", []string{"a: True", "b: True", "c: False HasRemediateMachineAnnotation" + waiting}, w.marks())

	w.workload.Err = nil
	w.Clock.Step(time.Minute)
	w.settled()
	equal(t, "marks once it is reachable", []string{
		"a: False UnhealthyNode" + waiting, "b: False MachineHasFailure" + waiting, "c: False HasRemediateMachineAnnotation" + waiting,
	}, w.marks())
	equal(t, "status", "0/3, 0 allowed, True", w.status())
}

// TestConnectedAPIServerDoesNotRespond checks that the cache does not count if the API server does not respond.
func TestConnectedAPIServerDoesNotRespond(t *testing.T) {
	w := newWorld(t, check("100%"), running("a", "b")...)
	w.begin()
	w.becomes(corev1.ConditionUnknown, time.Hour, "a")
	w.workload.Before = func(r fakeapi.Request) error {
		if !r.Cached {
			return errors.New("timeout")
		}
		return nil
	}
	after, err := w.reconcile(w.check)
	testenv.Must(t, err)
	equal(t, "next reconcile", unansweredBackstop, after)
	equal(t, "marks", []string{"a: True", "b: True"}, w.marks())
	equal(t, "status", "2/2, 2 allowed, False WorkloadClusterUnreachable", w.status())
	w.workload.Before = nil
	w.Clock.Step(after)
	w.settled()
	equal(t, "marks", []string{"a: False UnhealthyNode" + waiting, "b: True"}, w.marks())
	equal(t, "status", "1/2, 1 allowed, True", w.status())
}

// TestRestartIsNotAnOutage checks that a manager that has not connected yet changes nothing.
func TestRestartIsNotAnOutage(t *testing.T) {
	w := newWorld(t, check("100%"), running("a")...)
	w.begin()
	cluster := types.NamespacedName{Namespace: "default", Name: "c"}
	testenv.Must(t, w.Create(t.Context(), pki.NewSecret(cluster, pki.Kubeconfig, nil, nil)))
	_, w.workload.Err = remote.New(remote.Options{Secrets: struct {
		client.Reader
		cache.Informers
	}{Reader: w.Client}, Scheme: w.Scheme(), Clock: w.Clock}).Get(t.Context(), cluster)
	if !remote.IsConnecting(w.workload.Err) {
		t.Fatal(w.workload.Err)
	}
	after, err := w.reconcile(w.check)
	testenv.Must(t, err)
	equal(t, "next reconcile", connectingBackstop, after)
	equal(t, "writes", nil, w.Writes)
}

// TestInterruptedAfterEveryRequest checks that a manager that is stopped after any request does not lead to another result.
func TestInterruptedAfterEveryRequest(t *testing.T) {
	stopped := errors.New("stopped")
	for stop := 1; ; stop++ {
		w := newWorld(t, check("2"), running("a", "b", "c", "d")...)
		w.begin()
		w.becomes(corev1.ConditionUnknown, time.Hour, "a", "b")
		requests := 0
		after := func(r fakeapi.Request, err error) error {
			if r.Cached {
				return err
			}
			if requests++; requests >= stop {
				return stopped
			}
			return err
		}
		w.After, w.workload.After = after, after
		_, err := w.reconcile(w.check)
		w.After, w.workload.After = nil, nil
		interrupted := requests >= stop
		if interrupted && err == nil && condition.IsTrue(w.health(), clusterv1.RemediationAllowedV1Beta1Condition) && stop < 4 {
			t.Errorf("request %d: the failure was not noticed", stop)
		}
		w.check = w.newProcess()
		w.Clock.Step(time.Minute)
		w.settled()
		equal(t, "marks", []string{"a: False UnhealthyNode" + waiting, "b: False UnhealthyNode" + waiting, "c: True", "d: True"}, w.marks())
		equal(t, "status", "2/4, 0 allowed, True", w.status())
		if !interrupted {
			if stop < 7 {
				t.Errorf("there were only %d requests", requests)
			}
			return
		}
	}
}

// TestRangeWithoutUnhealthyMachines checks that a lower limit is announced only once there is a Machine that it concerns: a healthy cluster
// is none of its causes.
func TestRangeWithoutUnhealthyMachines(t *testing.T) {
	in := check("100%", func(h *clusterv1.MachineHealthCheck) { h.Spec.Remediation.TriggerIf.UnhealthyInRange = "[3-5]" })
	w := newWorld(t, in, running("a", "b", "c")...)
	w.settled()
	equal(t, "status", "3/3, 0 allowed, False TooManyUnhealthy", w.status())
	equal(t, "events", nil, w.Events())

	w.becomes(corev1.ConditionUnknown, time.Hour, "a")
	w.settled()
	equal(t, "status", "2/3, 0 allowed, False TooManyUnhealthy", w.status())
	equal(t, "events", []string{
		"Warning RemediationRestricted No Machine is remediated: 1 of 3 Machines are not healthy, which is outside of unhealthyRange [3-5] (3 to 5 Machines)",
	}, w.Events())
}

// TestRestrictionIsAnnouncedOnce checks that neither a restart nor a previous version, whose message was another one, announces a restriction again.
func TestRestrictionIsAnnouncedOnce(t *testing.T) {
	w := newWorld(t, check("40%"), running("a", "b", "c")...)
	w.begin()
	w.becomes(corev1.ConditionUnknown, time.Hour, "a", "b")
	w.settled()
	equal(t, "events", 1, len(w.Events()))
	h := w.health()
	was := condition.Get(h, clusterv1.RemediationAllowedV1Beta1Condition).DeepCopy()
	was.Message = "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy"
	condition.Set(h, *was)
	testenv.Must(t, w.Status().Update(t.Context(), h))
	w.settled()
	equal(t, "events about another message", nil, w.Events())

	w.check = w.newProcess()
	w.settled()
	equal(t, "events after a restart", nil, w.Events())
	w.becomes(corev1.ConditionTrue, 0, "a", "b")
	w.Clock.Step(time.Minute)
	w.settled()
	equal(t, "status", "3/3, 1 allowed, True", w.status())
	w.Events()
	w.becomes(corev1.ConditionUnknown, time.Hour, "a", "b")
	w.settled()
	equal(t, "events", 1, len(w.Events()))
}

// TestFirstControlPlaneMachine checks a Machine of a control plane that is not initialized; its cluster is not connected.
func TestFirstControlPlaneMachine(t *testing.T) {
	plane := build.Machine("a", object.ControlPlane, func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) })
	w := newWorld(t, check("100%"), plane)
	c := build.Cluster()
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	c.SetV1Beta1Conditions(nil)
	testenv.Must(t, w.Status().Update(t.Context(), c))
	w.workload.Err = &remote.NotConnectedError{Since: now, Cause: errors.New("no kubeconfig")}
	w.settled()
	equal(t, "marks", []string{"a: False NodeStartupTimeout" + waiting}, w.marks())
	equal(t, "status", "0/1, 0 allowed, True", w.status())
}

func TestConflictsAreRetried(t *testing.T) {
	w := newWorld(t, check("1"), running("a", "b")...)
	w.begin()
	w.becomes(corev1.ConditionUnknown, time.Hour, "a")
	w.Before = func(r fakeapi.Request) error {
		if r.String() == "patch Machine/status a" {
			w.Before = nil
			w.change("a", func(m *clusterv1.Machine) {
				m.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: ""}
			})
		}
		return nil
	}
	for range 3 {
		if _, err := w.reconcile(w.check); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "a Machine that changed meanwhile is not marked", []string{"a: True", "b: True"}, w.marks())
	equal(t, "attempts", 1, len(slices.DeleteFunc(w.Writes, func(s string) bool { return s != "patch Machine/status a" })))
}

func TestAdoption(t *testing.T) {
	w := newWorld(t, check("1", func(h *clusterv1.MachineHealthCheck) { h.Labels, h.OwnerReferences = nil, nil }))
	w.settled()
	h := w.health()
	equal(t, "label", "c", h.Labels[clusterv1.ClusterNameLabel])
	equal(t, "owners", 1, len(h.OwnerReferences))
	equal(t, "writes", []string{"patch MachineHealthCheck h", "patch MachineHealthCheck/status h"}, w.Writes)
}

func TestNothingHappensWithoutCluster(t *testing.T) {
	for name, change := range map[string]func(*world, *clusterv1.Cluster){
		"Paused": func(w *world, c *clusterv1.Cluster) {
			c.Spec.Paused = ptr.To(true)
			testenv.Must(w, w.Update(w.Context(), c))
		},
		"Deleting": func(w *world, c *clusterv1.Cluster) {
			c.Finalizers = []string{clusterv1.ClusterFinalizer}
			testenv.Must(w, w.Update(w.Context(), c), w.Delete(w.Context(), c))
		},
		"Gone": func(w *world, c *clusterv1.Cluster) { testenv.Must(w, w.Delete(w.Context(), c)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, check("100%"), running("a")...)
			w.becomes(corev1.ConditionUnknown, time.Hour, "a")
			c := build.Cluster()
			testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
			change(w, c)
			w.settled()
			equal(t, "marks", []string{"a:"}, w.marks())
			equal(t, "status", "0/0, 0 allowed", w.status())
		})
	}
}
