package record

// MaxPage bounds every list, whatever the caller asks for.
const MaxPage = 1000

func PageSize(limit int) int {
	if limit <= 0 {
		return 50
	}
	return min(limit, MaxPage)
}
