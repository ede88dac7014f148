--! keys: latest, totals
--! args: record, rises*
-- Keeps how the latest micro-batch went. ``rises`` has of each total its field and by how much it rises.
redis.call('SET', latest, record)
for i = 1, #rises, 2 do redis.call('HINCRBY', totals, rises[i], rises[i + 1]) end
return 1
