package yamlfile

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// JSON returns a decoded YAML value as decoded JSON: map[string]any, []any,
// string, bool, nil and json.Number. Values that JSON does not have are errors.
func JSON(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string, json.Number:
		return v, nil
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), nil
	case uint64:
		return json.Number(strconv.FormatUint(v, 10)), nil
	case int:
		return json.Number(strconv.Itoa(v)), nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, fmt.Errorf("%v is not a number that JSON can write", v)
		}
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64)), nil
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = JSON(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			var err error
			if object[name], err = JSON(member); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return nil, fmt.Errorf("JSON cannot write a %T", v)
}
