package mutation

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Classes returns the ClusterClasses that refer to an extension of an ExtensionConfig, for patches or upgrades.
func Classes(ctx context.Context, reader client.Reader, config string) ([]client.ObjectKey, error) {
	list := &clusterv1.ClusterClassList{}
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the ClusterClasses of ExtensionConfig %s: %w", config, err)
	}
	var out []client.ObjectKey
	for i := range list.Items {
		if refersTo(&list.Items[i], config) {
			out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return out, nil
}

func refersTo(class *clusterv1.ClusterClass, config string) bool {
	if strings.HasSuffix(class.Spec.Upgrade.External.GenerateUpgradePlanExtension, "."+config) {
		return true
	}
	for i := range class.Spec.Patches {
		external := class.Spec.Patches[i].External
		if external == nil {
			continue
		}
		for _, handler := range []string{
			external.GeneratePatchesExtension, external.ValidateTopologyExtension, external.DiscoverVariablesExtension,
		} {
			if strings.HasSuffix(handler, "."+config) {
				return true
			}
		}
	}
	return false
}
