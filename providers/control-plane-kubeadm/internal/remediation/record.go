package remediation

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// record is a remediation as annotations have it: those of KubeadmControlPlanes and Machines that exist are read, too.
type record = controlplanev1beta1.LastRemediationStatus

// inProgress returns the record of the remediation in progress, nil if there is none.
func inProgress(kcp *controlplanev1.KubeadmControlPlane) (*record, error) {
	return parse(kcp.Annotations, controlplanev1.RemediationInProgressAnnotation)
}

// begin records a remediation as the one in progress, in memory.
func begin(kcp *controlplanev1.KubeadmControlPlane, r *record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("recording a remediation: %w", err)
	}
	metav1.SetMetaDataAnnotation(&kcp.ObjectMeta, controlplanev1.RemediationInProgressAnnotation, string(raw))
	kcp.Status.LastRemediation = controlplanev1.LastRemediationStatus{Machine: r.Machine, Time: r.Timestamp, RetryCount: &r.RetryCount}
	return nil
}

func parse(annotations map[string]string, key string) (*record, error) {
	raw, ok := annotations[key]
	if !ok {
		return nil, nil
	}
	r := &record{}
	if err := json.Unmarshal([]byte(raw), r); err != nil {
		return nil, step.Terminal(fmt.Errorf("cannot parse annotation %s, remove it: %w", key, err))
	}
	return r, nil
}

// retry is the remediation of a Machine, in relation to the previous one.
type retry struct {
	// record is the record of the remediation.
	record *record
	// ofLast is true if the Machine is a replacement that has failed within window. Otherwise its failure is unrelated.
	ofLast bool
	// since is the time since the previous remediation; window is how long another one counts as its retry.
	since, window time.Duration
	limits        controlplanev1.KubeadmControlPlaneRemediationSpec
}

// retryOf determines whether the remediation of a Machine is a retry.
func retryOf(kcp *controlplanev1.KubeadmControlPlane, m *snapshot.Machine, now time.Time) retry {
	r := retry{
		record: &record{Machine: m.Name, Timestamp: metav1.NewTime(now.UTC().Truncate(time.Second))},
		window: seconds(ptr.Deref(kcp.Spec.Remediation.MinHealthyPeriodSeconds, controlplanev1.DefaultMinHealthyPeriodSeconds)),
		limits: kcp.Spec.Remediation,
	}
	last, err := parse(m.Annotations, controlplanev1.RemediationForAnnotation)
	if err != nil || last == nil {
		return r
	}
	if r.since = now.Sub(last.Timestamp.Time); r.since < r.window {
		r.ofLast, r.record.RetryCount = true, last.RetryCount+1
	}
	return r
}

// tooSoon returns how long the retry must wait for the retry period, zero if it need not.
func (r retry) tooSoon() time.Duration {
	if !r.ofLast {
		return 0
	}
	return max(0, r.retryPeriod()-r.since)
}

// retryPeriod returns the minimum time between two retries.
func (r retry) retryPeriod() time.Duration { return seconds(ptr.Deref(r.limits.RetryPeriodSeconds, 0)) }

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// tooMany returns how long the retry must wait because there were too many, zero if there were not.
func (r retry) tooMany() time.Duration {
	if !r.ofLast || r.limits.MaxRetry == nil || r.record.RetryCount <= *r.limits.MaxRetry {
		return 0
	}
	return r.window - r.since
}
