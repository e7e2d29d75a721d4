package manager

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"sigs.k8s.io/cluster-api/sdk/apiversion"
)

// conversionPath is where API servers expect that objects are converted.
const conversionPath = "/convert"

// convert makes mapper, cache and client of a manager convert the kinds of Component.Conversions. Without any, the options do not change.
func (r *run) convert(o *ctrl.Options) {
	conversions := r.component.Conversions
	if conversions == nil {
		return
	}
	scheme, newCache, newClient := o.Scheme, o.NewCache, o.NewClient
	// The mapper is the first of the three that the manager creates.
	o.MapperProvider = func(config *rest.Config, web *http.Client) (meta.RESTMapper, error) {
		mapper, err := apiutil.NewDynamicRESTMapper(config, web)
		if err != nil {
			return nil, err
		}
		r.boundary, err = apiversion.New(apiversion.Options{
			Config: config, HTTPClient: web, Scheme: scheme, Registry: conversions, Log: r.log.WithName("conversion"),
		})
		if err != nil {
			return nil, err
		}
		return r.boundary.Mapper(mapper), nil
	}
	o.NewCache = func(config *rest.Config, co cache.Options) (cache.Cache, error) {
		return newCache(config, r.boundary.Cache(config, co))
	}
	o.NewClient = func(config *rest.Config, co client.Options) (client.Client, error) {
		c, err := newClient(config, co)
		if err != nil {
			return nil, err
		}
		return r.boundary.CachedClient(c), nil
	}
}

// convertingManager is a manager whose API reader converts, too.
type convertingManager struct {
	ctrl.Manager
	reader client.Reader
}

// GetAPIReader returns a reader without a cache.
func (m convertingManager) GetAPIReader() client.Reader { return m.reader }
