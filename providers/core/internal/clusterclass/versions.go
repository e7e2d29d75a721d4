package clusterclass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// versions reports references with an outdated API version.
func (c *Controller) versions(ctx context.Context, s *scope) (step.Result, error) {
	var outdated, notInstalled []string
	for _, ref := range templateRefs(s.ClusterClass) {
		newest, err := c.Versions.Newest(ctx, ref.GroupVersionKind().GroupKind())
		if missing := (*contract.NotInstalledError)(nil); errors.As(err, &missing) {
			notInstalled = append(notInstalled, missing.Error())
			continue
		}
		if err != nil {
			return step.Done(), err
		}
		if have := ref.GroupVersionKind().Version; have != newest.Version {
			outdated = append(outdated, fmt.Sprintf("* %s %s: current: %s, latest: %s", ref.Kind, ref.Name, have, newest.Version))
		}
	}
	if len(notInstalled) > 0 {
		slices.Sort(notInstalled)
		return step.Done().WithConditions(condition.Unknown(clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition,
			clusterv1.ClusterClassProviderNotInstalledV1Beta1Reason, "%s", strings.Join(slices.Compact(notInstalled), ", "))), nil
	}
	if len(outdated) > 0 {
		// Cluster API v1.14 has the same text, so that a takeover does not write it again.
		return step.Done().WithConditions(condition.False(clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition,
			clusterv1.ConditionSeverityWarning, clusterv1.ClusterClassOutdatedRefVersionsV1Beta1Reason,
			"The following templateRefs are not using the latest apiVersion:\n%s", strings.Join(outdated, "\n"))), nil
	}
	return step.Done(), nil
}
