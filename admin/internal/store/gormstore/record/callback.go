package record

// CallbackRow is a row of callbacks: an ended run that one is wanted of.
type CallbackRow struct {
	ExecutionID int64 `gorm:"column:execution_id;primaryKey;autoIncrement:false"`
	Success     int64 `gorm:"column:success;primaryKey;autoIncrement:false"`
	TenantID    int64 `gorm:"column:tenant_id"`
	CreatedAt   int64 `gorm:"column:created_at;autoCreateTime:false"`
}

func (CallbackRow) TableName() string { return "callbacks" }
