--! keys: latest, totals
--! args: record, rises*
-- Stores the progress of the latest micro-batch. ``rises``: for each total its field and the amount to add.
redis.call('SET', latest, record)
for i = 1, #rises, 2 do redis.call('HINCRBY', totals, rises[i], rises[i + 1]) end
return 1
